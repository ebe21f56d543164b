"""The ids that commands of a script get."""

from __future__ import annotations

import pytest

from checkpoint_action.starting.scripts import draft_of_script


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("make -j4", "make"),
        ('make -j"$(nproc)" all', "make-all"),
        ("./configure --prefix=/usr", "configure"),
        ("[ -d src ] || git clone https://example.com/x.git src", "git-clone"),
        ("if [ ! -f configure ]; then autoreconf -fi; fi", "autoreconf"),
        ('for t in a b c; do ./run-tests "$t"; done', "run-tests"),
        ("FOO=1 sudo ./scripts/deploy.sh --fast staging", "deploy-staging"),
        ("cat <<X > file.txt\nhello\nX", "cat"),
        ("find . -name '*.o' -delete", "find"),
        ("rm -rf tmp", "rm-tmp"),
        ("[[ -f x ]] && rm x", "rm-x"),
        ("! grep -q bad log", "grep"),
        ('case "$1" in dev) ./hello world;; esac', "hello-world"),
        ("test -f out.bin", "test-out.bin"),
        ("tar czf out.tgz out", "tar-out.tgz"),
        ("python3 -m pip install -r requirements.txt", "pip-install"),
        ("python train.py --epochs 3", "train"),
        ("npm ci && npm run build", "npm-ci"),
        ("mkdir -p build && cmake -B build", "cmake-build"),
        ("mkdir -p build", "mkdir-build"),
        ("curl -fL -o in.mp4 https://example.com/in.mp4", "curl-in.mp4"),
        ("command -v jq >/dev/null || apt-get install jq", "apt-get-install"),
    ],
)
def test_an_id_says_what_the_command_does(command: str, name: str) -> None:
    [step] = draft_of_script(f"#!/bin/bash\n{command}\n", "x.sh", "j").steps
    assert step.id == name


def test_a_step_that_only_prints_has_an_id_too() -> None:
    [step] = draft_of_script('#!/bin/bash\necho "$HOME"\n', "x.sh", "j").steps
    assert step.id
