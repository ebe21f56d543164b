"""Jobs that go on on another machine: ``--store``, ``pull``, ``push`` and ``store``, through the installed program."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from checkpoint_action.cli import main
from checkpoint_action.store.resuming import ResumingStore
from tests.console import Console

if TYPE_CHECKING:
    from pathlib import Path

    from checkpoint_action.store.base import Found

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="the steps are written for bash"),
    pytest.mark.timeout(180),
]

JOB = """\
job: demo
steps:
  - id: one
    run: echo ran >> "$KEEP/one"; mkdir -p d; echo 1 > d/x; ln -sf x d/link
  - id: two
    run: echo ran >> "$KEEP/two"; cat d/x > two.txt; echo changed >> d/x
  - id: three
    run: echo ran >> "$KEEP/three"; test -e "$KEEP/fixed"; cat two.txt > three.txt
"""


class Site:
    """Some machines with a checkout each, and a store.

    :ivar keep: counts what runs, and holds the file whose absence fails step three.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = f"file://{folder}/store"
        self.keep = folder / "keep"
        self.keep.mkdir()
        self.origin = folder / "origin"
        self.origin.mkdir()
        (self.origin / "checkpoint.yml").write_text(JOB)
        (self.origin / "source").write_text("text\n")
        git(self.origin, "init", "--quiet")
        self.commit()

    def commit(self) -> None:
        git(self.origin, "add", "--all")
        git(self.origin, "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "--quiet", "-m", "x")

    def machine(self, name: str) -> Machine:
        git(self.folder, "clone", "--quiet", str(self.origin), name)
        return Machine(self, self.folder / name)

    def counts(self) -> list[int]:
        """How often each step has run, anywhere."""
        files = (self.keep / step for step in ("one", "two", "three"))
        return [file.read_text().count("ran") if file.exists() else 0 for file in files]

    def archives(self) -> list[Path]:
        return sorted((self.folder / "store").rglob("*.tar.zst"))


class Machine(Console):
    """A clone."""

    def __init__(self, site: Site, folder: Path) -> None:
        super().__init__(folder)
        self.site = site

    def say(self, *words: str, code: int = 0, **env: str) -> str:
        """Run it with the store; both its outputs."""
        given = {"KEEP": str(self.site.keep), "CHECKPOINT_STORE": self.site.store, **env}
        ended = self.run(*words, env=given)
        assert ended.returncode == code, ended.stderr + ended.stdout
        return ended.stdout + ended.stderr

    def plan(self, *words: str, **env: str) -> list[tuple[str, str]]:
        """Action and reason of each step."""
        given = {"KEEP": str(self.site.keep), **env}
        planned = json.loads(self.run("plan", "--json", *words, env=given).stdout)
        return [(step["action"], step["reason"]) for step in planned["steps"]]

    def read(self) -> dict[str, str]:
        names = ("d/x", "d/link", "two.txt", "three.txt")
        return {name: (self.folder / name).read_text() for name in names if (self.folder / name).exists()}


def git(folder: Path, *words: str) -> None:
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    subprocess.run(["git", *words], cwd=folder, env=env, check=True, capture_output=True)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


DONE = {"d/x": "1\nchanged\n", "d/link": "1\nchanged\n", "two.txt": "1\n", "three.txt": "1\n"}


def test_a_second_machine_puts_back_what_the_first_has_done_and_runs_the_rest(site: Site) -> None:
    first, second, third = (site.machine(name) for name in ("first", "second", "third"))
    first.say(code=1)
    (site.keep / "fixed").touch()
    said = second.say()
    assert "one: restored" in said
    assert site.counts() == [1, 1, 2]
    assert second.read() == DONE
    assert "3 restored" in third.say()
    assert (site.counts(), third.read()) == ([1, 1, 2], DONE)
    assert first.plan("--store", site.store) == [("skip", "done")] * 2 + [("restore", "restored")]
    first.say()
    assert (site.counts(), first.read()) == ([1, 1, 2], DONE)


def test_a_plan_with_a_store_tells_and_changes_nothing(site: Site) -> None:
    first, second = site.machine("first"), site.machine("second")
    (site.keep / "fixed").touch()
    assert second.plan("--store", site.store) == [("run", "never-ran")] * 3
    first.say()
    names = set(os.listdir(second.folder))
    assert second.plan("--store", site.store) == [("restore", "restored")] * 3
    assert second.plan() == [("run", "never-ran")] * 3
    assert set(os.listdir(second.folder)) == names


def test_what_counted_with_the_store_counts_without_it(site: Site) -> None:
    machine = site.machine("machine")
    (site.keep / "fixed").touch()
    machine.say()
    assert machine.plan() == [("skip", "done")] * 3
    (machine.folder / "source").write_text("other text\n")
    assert [reason for _action, reason in machine.plan()] == ["inputs-changed"] * 3
    assert machine.plan("--store", site.store)[0] == ("run", "inputs-changed")


def test_another_commit_with_other_files_takes_nothing_from_the_store(site: Site) -> None:
    (site.keep / "fixed").touch()
    site.machine("first").say()
    (site.origin / "source").write_text("new\n")
    site.commit()
    second = site.machine("second")
    second.say()
    assert site.counts() == [2, 2, 2]
    (site.origin / "source").write_text("text\n")
    site.commit()
    assert site.machine("third").plan("--store", site.store)[0][1] in ("inputs-changed", "restored")


def test_what_was_done_before_there_was_a_store_is_put_there_where_it_is_known(site: Site) -> None:
    (site.origin / "checkpoint.yml").write_text(
        "job: demo\nsteps:\n"
        "- {id: one, run: 'echo ran >> \"$KEEP/one\"; echo 1 > one.txt', inputs: [source], outputs: [one.txt]}\n"
        "- {id: two, run: 'echo ran >> \"$KEEP/two\"; echo 2 > two.txt', inputs: [source]}\n"
    )
    site.commit()
    first, second = site.machine("first"), site.machine("second")
    first.say("--store", "none")
    assert not site.archives()
    first.say()
    second.say()
    assert site.counts()[:2] == [1, 2]
    assert (second.folder / "one.txt").read_text() == "1\n"


def test_nothing_is_put_into_a_store_that_is_only_read(site: Site) -> None:
    first, second = site.machine("first"), site.machine("second")
    first.say(code=1)
    before = site.archives()
    (site.keep / "fixed").touch()
    assert "restored" in second.say("--read-only")
    assert site.counts() == [1, 1, 2]
    assert site.archives() == before


def test_an_archive_without_the_signature_is_left_alone_and_no_step_sees_the_key(site: Site) -> None:
    (site.keep / "fixed").touch()
    (site.origin / "checkpoint.yml").write_text(
        "job: demo\nsteps:\n- {id: one, run: 'env > all; echo ran >> \"$KEEP/one\"'}\n"
    )
    site.commit()
    first, second, third = (site.machine(name) for name in ("first", "second", "third"))
    first.say()
    said = second.say(CHECKPOINT_SIGNING_KEY="a secret key")
    assert "is not usable" in said
    assert site.counts()[0] == 2
    assert "a secret key" not in (second.folder / "all").read_text()
    assert "1 restored" in third.say(CHECKPOINT_SIGNING_KEY="a secret key")
    assert "is not usable" in site.machine("fourth").say(CHECKPOINT_SIGNING_KEY="another key")


def test_logs_in_the_workspace_and_what_is_excluded_are_kept_out(site: Site) -> None:
    (site.keep / "fixed").touch()
    site.machine("first").say("--logs-dir", "logs", "--exclude", "*.txt")
    second = site.machine("second")
    second.say()
    assert not list(second.folder.rglob("*.log"))
    assert second.read() == {"d/x": "1\nchanged\n", "d/link": "1\nchanged\n"}


def test_a_store_that_cannot_be_used_costs_a_warning_or_the_run_where_that_is_asked_for(site: Site) -> None:
    (site.keep / "fixed").touch()
    (site.folder / "store").write_text("in the way")
    first = site.machine("first")
    said = first.say()
    assert said.count("going on without the store") == 1
    assert first.read() == DONE
    second = site.machine("second")
    assert "in the way" not in second.say("--fail-on-store-error", code=1)


def test_a_step_outside_of_git_must_say_what_it_reads(site: Site, tmp_path: Path) -> None:
    folder = tmp_path / "plain"
    folder.mkdir()
    (folder / "checkpoint.yml").write_text(JOB)
    machine = Machine(site, folder)
    said = machine.say(code=2)
    assert "list the inputs of every step; or tie the tries together by a name of your own: --run-id NAME" in said
    machine.say("--run-id", "night", code=1)
    other = tmp_path / "other"
    other.mkdir()
    (other / "checkpoint.yml").write_text(JOB)
    (site.keep / "fixed").touch()
    Machine(site, other).say("--run-id", "night")
    assert site.counts() == [1, 1, 2]


def test_the_flags_of_a_job_without_a_file_work_with_a_store(site: Site) -> None:
    words = ("--job", "j", "--step", 'a:echo ran >> "$KEEP/one"; echo a > a', "--step", "b:cat a > b")
    site.machine("first").say(*words)
    second = site.machine("second")
    second.say(*words)
    assert site.counts()[0] == 1
    assert (second.folder / "b").read_text() == "a\n"


def test_a_pull_takes_all_and_a_push_gives_all(site: Site, tmp_path: Path) -> None:
    first, second = site.machine("first"), site.machine("second")
    first.say(code=1)
    said = second.say("pull")
    assert "one, two: done, with files put back\nthree: to run: failed-before\ngo on with: checkpoint-run\n" in said
    assert site.counts() == [1, 1, 1]
    assert "one, two: done, with files as they are" in second.say("pull")
    (site.keep / "fixed").touch()
    second.say("--store", "none", code=0)
    assert site.counts() == [1, 1, 2]
    other = f"file://{tmp_path}/other"
    told = json.loads(second.say("push", "--json", "--store", other, code=0).splitlines()[-1])
    assert told["left"].keys() == {"one", "three"}
    assert "d/x" in told["left"]["one"]  # a later step has changed it, and the archive it came in is not here any more
    assert "declare its outputs" in told["left"]["three"]
    assert told["pushed"] == ["two"]


def test_a_pull_never_writes_over_what_a_person_made_unless_told(site: Site) -> None:
    first, second = site.machine("first"), site.machine("second")
    first.say(code=1)
    (second.folder / "two.txt").write_text("mine\n")
    said = second.say("pull", code=2)
    assert "two.txt; give --overwrite" in said
    assert second.read() == {"two.txt": "mine\n"}
    assert not list(second.folder.glob(".checkpoint-run-*"))
    second.say("pull", "--overwrite")
    assert second.read()["two.txt"] == "1\n"


def test_a_pull_fetches_the_archive_after_the_one_that_it_puts_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = "job: demo\nsteps:\n- {id: one, run: echo 1 > one.txt, inputs: [], outputs: [one.txt]}\n"
    more = "- {id: two, run: echo 2 > two.txt, inputs: [], outputs: [two.txt]}\n"
    words = ["--store", f"file://{tmp_path}/store", "--run-id", "1"]
    first = tmp_path / "first"
    first.mkdir()
    for text in (job, job + more):  # an archive each
        (first / "checkpoint.yml").write_text(text)
        assert Console(first).run(*words).returncode == 0
    second = tmp_path / "second"
    second.mkdir()
    (second / "checkpoint.yml").write_text(job + more)
    begun: list[str] = []
    begin = ResumingStore.begin_fetch

    def begin_fetch(store: ResumingStore, found: Found) -> None:
        begun.append(found.key)
        begin(store, found)

    monkeypatch.setattr(ResumingStore, "begin_fetch", begin_fetch)
    monkeypatch.chdir(second)
    assert main(["pull", *words]) == 0
    assert (second / "two.txt").read_text() == "2\n"
    assert ["-two" in key for key in begun] == [True]
    (second / "one.txt").unlink()
    assert main(["pull", *words]) == 0
    assert len(begun) == 1  # the files of the other are there


def test_a_pull_from_an_empty_store_says_so(site: Site) -> None:
    machine = site.machine("machine")
    said = machine.say("pull", code=2)
    assert "there is no checkpoint of job demo" in said
    assert not list(machine.folder.glob(".checkpoint-run-*"))


def test_a_store_is_listed_and_pruned(site: Site) -> None:
    machine = site.machine("machine")
    machine.say(code=1)
    (site.keep / "fixed").touch()
    machine.say()
    listed = machine.say("store", "ls")
    assert len(listed.splitlines()) == len(site.archives()) + 1 > 3
    rows = json.loads(machine.say("store", "ls", site.store, "--json"))["entries"]
    assert {row["key"] for row in rows} == {line.split()[-1] for line in listed.splitlines()[:-1]}
    before = site.archives()
    assert "would delete" in machine.say("store", "prune", "--older-than", "0", "--keep", "1", "--dry-run")
    assert site.archives() == before
    assert machine.say("store", "prune", "--older-than", "1d").startswith("0 archives")
    machine.say("store", "prune", "--older-than", "0", "--keep", "1")
    assert len(site.archives()) < len(before)
    assert "3 restored" in site.machine("other").say()
    machine.say("store", "prune", "--older-than", "0", "--keep", "0")
    assert not site.archives()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("store",), "store needs a word; write store ls URL"),
        (("store", "list"), "store 'list': no such word"),
        (("store", "prune"), "write --older-than 7d --keep N"),
        (("store", "ls", "--dry-run"), "are for store prune"),
        (("store", "ls", "a", "b"), "takes one URL; leave 'b' out"),
        (("store", "ls", "nowhere"), "'nowhere' is no URL"),
        (("--store", "s4://x/y"), "no stores of kind 's4'"),
        (("--store", "s3://u:p@x/y"), "a user or key has no place in the URL"),
        (("--max-size", "much"), "--max-size: 'much' is not a size"),
    ],
)
def test_a_mistake_is_one_line(site: Site, words: tuple[str, ...], said: str) -> None:
    ended = site.machine("machine").run(*words)
    assert ended.returncode == 2, ended.stdout
    assert len(ended.stderr.splitlines()) == 1
    assert said in ended.stderr
    assert "u:p" not in ended.stderr


def test_a_push_without_a_store_and_a_pull_from_nowhere_say_what_they_need(site: Site) -> None:
    machine = site.machine("machine")
    assert "push needs a store: --store URL" in machine.run("push").stderr
    assert "pull needs a place to take from" in machine.run("pull").stderr
