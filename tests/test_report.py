"""``--report`` and ``report``: the page a user gets."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import pytest

from tests.console import Console, environment

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the steps are written for sh")

JOB = """\
job: demo
secrets: [TOKEN]
steps:
- {id: fetch, run: echo x >got, outputs: [got]}
- {id: mask, run: "echo '::add-mask::veiled-value'"}
- {id: build, run: 'echo "<script>alert(1)</script> $TOKEN veiled-value"; exit 3'}
- {id: publish, run: "true"}
"""


class Seen(HTMLParser):
    """The texts of a page and the names of its elements."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, _attrs: object) -> None:
        self.elements.append(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@pytest.fixture
def console(tmp_path: Path) -> Console:
    (tmp_path / "checkpoint.yml").write_text(JOB)
    return Console(tmp_path)


def test_a_failed_run_writes_its_page_without_secrets(console: Console) -> None:
    ran = console.run("--report", "page.html", env={"TOKEN": "hush-hush"})
    assert ran.returncode == 1
    page = (console.folder / "page.html").read_text("ascii")
    seen = Seen(page)
    assert "script" not in seen.elements
    assert "Job demo: failed" in seen.texts
    assert {"fetch", "mask", "build", "publish", "never-ran"} <= set(seen.texts)
    assert "<script>alert(1)</script> *** ***" in "".join(seen.texts)
    assert "hush-hush" not in page
    assert "veiled-value" not in page
    assert not list(console.folder.glob(".cpr-*"))


def test_the_verb_writes_the_page_of_what_is_recorded(console: Console) -> None:
    console.run(env={"TOKEN": "hush-hush"})
    told = console.run("report", "page.html", env={"TOKEN": "hush-hush"})
    assert (told.returncode, told.stdout, told.stderr) == (0, "wrote page.html\n", "")
    page = (console.folder / "page.html").read_text("ascii")
    assert "Job demo: failed" in Seen(page).texts
    assert "hush-hush" not in page
    assert "veiled-value" not in page


def test_a_second_run_says_what_was_skipped(console: Console) -> None:
    console.run()
    console.run("--report", "page.html")
    texts = Seen((console.folder / "page.html").read_text("ascii")).texts
    assert texts.count("skipped") == 2
    assert "2 bytes" in texts


def test_a_page_that_cannot_be_written_is_5_only_when_all_else_went_well(console: Console) -> None:
    failed = console.run("--report", "no/page.html")
    assert failed.returncode == 1
    assert "warning: CPR116: cannot write the report no/page.html: No such file" in failed.stderr
    (console.folder / "checkpoint.yml").write_text("job: fine\nsteps:\n- {id: a, run: 'true'}\n")
    fine = console.run("--report", "no/page.html")
    assert fine.returncode == 5
    assert "error CPR116: cannot write the report no/page.html: No such file" in fine.stderr


def test_a_stopped_run_writes_its_page(console: Console) -> None:
    (console.folder / "checkpoint.yml").write_text("job: long\nsteps:\n- {id: a, run: 'echo ready; sleep 60'}\n")
    process = console.start("--report", "page.html", env=environment())
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    os.kill(process.pid, signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    assert "Job long: stopped" in Seen((console.folder / "page.html").read_text("ascii")).texts


def test_what_is_no_file_is_written_to_and_not_replaced(console: Console, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("old")
    (tmp_path / "link.html").symlink_to("page.html")
    pipe = console.fifo("pipe")
    words = ("--job", "j", "--step", "a:true", "--report")
    assert console.run(*words, "link.html").returncode == 0
    assert (tmp_path / "link.html").is_symlink()
    assert "Job j: done" in (tmp_path / "page.html").read_text()
    with console.start(*words, "pipe", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as started:
        assert "Job j: done" in pipe.read_text()
        assert started.wait(60) == 0
    assert pipe.is_fifo()
