"""What goes wrong between machines that share a store costs no finished step, and is told as it is."""

from __future__ import annotations

import hashlib
import sys
from typing import TYPE_CHECKING

import pytest

from tests.test_sharing import Machine, Site

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="the steps are written for bash"),
    pytest.mark.timeout(180),
]

TWO = """\
job: demo
steps:
  - id: one
    run: echo ran >> "$KEEP/one"; cat source > a
    outputs: [a]
  - id: two
    run: echo ran >> "$KEEP/two"; cat a > b; test -e "$KEEP/fixed"
    outputs: [b]
"""

PROGRESS = """\
job: demo
steps:
  - id: one
    run: echo part >> p; echo part >> "$CHECKPOINT_DIR/q"; cp "$CHECKPOINT_DIR/q" q; test -e "$KEEP/fixed"
    partial: [p]
"""


def site_of(folder: Path, job: str) -> Site:
    site = Site(folder)
    (site.origin / "checkpoint.yml").write_text(job)
    site.commit()
    return site


def fetched(machine: Machine, archive: Path) -> Path:
    """Where a pull keeps what it has of an archive."""
    key = f"{archive.parent.name}-{archive.name.removesuffix('.tar.zst')}"
    folder = machine.folder / ".checkpoint-run-demo.fetched"
    folder.mkdir(exist_ok=True)
    return folder / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.archive"


def test_what_is_done_here_stays_done_though_another_machine_did_it_since_with_other_files(tmp_path: Path) -> None:
    site = site_of(tmp_path, TWO)
    (site.keep / "fixed").touch()
    first, second = site.machine("first"), site.machine("second")
    first.say()
    (second.folder / "source").write_text("another branch\n")
    second.say()
    assert site.counts()[:2] == [2, 2]
    assert [what for what, _why in first.plan("--store", site.store)] == ["skip", "skip"]
    first.say()
    second.say()
    first.say("pull")
    first.say()
    assert site.counts()[:2] == [2, 2]
    assert (first.folder / "b").read_text() == "text\n"


def test_what_another_machine_did_is_put_back_over_what_this_ones_own_step_left(tmp_path: Path) -> None:
    site = site_of(tmp_path, TWO)
    (site.keep / "fixed").touch()
    machines = [site.machine(name) for name in ("first", "second", "third")]
    for machine in machines[::2]:
        machine.say()
    (machines[1].folder / "source").write_text("another branch\n")
    machines[1].say()
    for machine, words in zip(machines[::2], ((), ("pull",)), strict=True):
        (machine.folder / "source").write_text("another branch\n")
        machine.say(*words)
        assert (machine.folder / "b").read_text() == "another branch\n"
        machine.say()
    assert site.counts()[:2] == [2, 2]


@pytest.mark.parametrize("where", ["/.store", "", "/deep/er/store"])
def test_a_store_that_lies_in_the_workspace_is_none_of_what_steps_leave(tmp_path: Path, where: str) -> None:
    site = site_of(
        tmp_path,
        "job: demo\nsteps:\n"
        + "".join(f"  - {{id: s{n}, run: 'sleep 1.2; head -c 100000 /dev/urandom > f{n}'}}\n" for n in range(3)),
    )
    first = site.machine("first")
    (first.folder / "deep/er").mkdir(parents=True)
    site.store = f"file://{first.folder}{where}"
    first.say()
    sizes = [path.stat().st_size for path in first.folder.rglob("*.tar.zst")]
    assert len(sizes) > 1
    assert sum(sizes) < 400_000
    second = site.machine("second")
    assert "3 restored" in second.say()
    assert not list(second.folder.rglob("*.tar.zst"))


def test_a_step_that_another_store_has_is_put_into_this_one(tmp_path: Path) -> None:
    site = site_of(tmp_path, TWO)
    first, second = site.machine("first"), site.machine("second")
    other = f"file://{tmp_path}/other"
    first.say("--store", other, code=1)
    (site.keep / "fixed").touch()
    first.say()
    first.say()  # by now it knows where the store has them
    assert "two: put into" in first.say("push", "--store", other)
    assert "2 restored" in second.say("--store", other)
    assert site.counts()[:2] == [1, 2]


def test_what_was_pruned_is_put_there_again(tmp_path: Path) -> None:
    site = site_of(tmp_path, TWO)
    (site.keep / "fixed").touch()
    first, second, third = (site.machine(name) for name in ("first", "second", "third"))
    first.say()
    first.say()
    (second.folder / "source").write_text("another branch\n")
    second.say()  # so that there is a state, and none of the first machine's
    for path in site.archives():
        if path.stat().st_mtime_ns < max(one.stat().st_mtime_ns for one in site.archives()):
            path.unlink()
    first.say()
    assert "2 restored" in third.say()
    assert site.counts()[:2] == [2, 2]


def test_progress_comes_with_a_pull(tmp_path: Path) -> None:
    site = site_of(tmp_path, PROGRESS)
    first, second = site.machine("first"), site.machine("second")
    first.say(code=1)
    assert "one: to run: failed-before, from what its last try left" in second.say("pull")
    (site.keep / "fixed").touch()
    second.say(CHECKPOINT_STORE="none")
    assert [(second.folder / name).read_text().split() for name in "pq"] == [["part"] * 2] * 2


def test_a_pull_leaves_a_file_of_ones_own_where_progress_would_go(tmp_path: Path) -> None:
    site = site_of(tmp_path, PROGRESS)
    first, second = site.machine("first"), site.machine("second")
    first.say(code=1)
    (second.folder / "p").write_text("mine")
    said = second.say("pull")
    assert "p is a file with other content" in said
    assert (second.folder / "p").read_text() == "mine"


def test_progress_that_a_run_learned_of_before_it_died_is_gone_on_from(tmp_path: Path) -> None:
    first_step = "steps:\n  - {id: zero, run: 'kill -9 $PPID', outputs: []}\n"
    job = PROGRESS.replace("steps:\n", first_step).replace("id: one\n", "id: one\n    needs: []\n")
    site = site_of(tmp_path, job)
    first, second = site.machine("first"), site.machine("second")
    first.say("--only", "one", code=1)
    second.say(code=-9)
    (site.keep / "fixed").touch()
    second.say("--only", "one")
    assert [(second.folder / name).read_text().split() for name in "pq"] == [["part"] * 2] * 2


@pytest.mark.parametrize("left", [b"", b"x" * 5000, None], ids=["empty", "other", "cut off"])
def test_a_damaged_file_of_an_earlier_pull_is_fetched_again(tmp_path: Path, left: bytes | None) -> None:
    site = site_of(tmp_path, TWO.replace("cat source > a", "head -c 600000 /dev/urandom > a"))
    (site.keep / "fixed").touch()
    first, second = site.machine("first"), site.machine("second")
    first.say()
    for archive in site.archives():
        fetched(second, archive).write_bytes(archive.read_bytes()[:1000] if left is None else left)
    second.say("pull")
    assert "nothing is left to run" in second.say("pull")
    assert (second.folder / "b").read_bytes() == (first.folder / "b").read_bytes()


def test_putting_a_step_back_leaves_alone_what_only_a_later_step_here_has(tmp_path: Path) -> None:
    site = site_of(
        tmp_path,
        """\
job: demo
steps:
  - {id: one, run: 'echo ran >> "$KEEP/one"; echo 1 > a; echo 1 > e; mkdir d; echo 1 > d/x; echo 1 > d/y'}
  - {id: two, run: 'echo ran >> "$KEEP/two"; head -c 9000 /dev/urandom >> a; rm d/x'}
""",
    )
    first = site.machine("first")
    said = first.say("--max-size", "1KiB")
    assert "two' is done but not kept" in said
    content = (first.folder / "a").read_bytes()
    (first.folder / "e").unlink()
    (first.folder / "d/y").unlink()
    (first.folder / "d").rmdir()
    said = first.say("--max-size", "1KiB")
    assert "one: restored" in said
    assert "two: skipped" in said
    assert (first.folder / "a").read_bytes() == content
    assert sorted(path.name for path in (first.folder / "d").iterdir()) == ["y"]
    assert (first.folder / "e").exists()
    assert site.counts()[:2] == [1, 1]


def test_a_tracked_file_that_the_job_itself_edits_runs_nothing_again(tmp_path: Path) -> None:
    site = site_of(
        tmp_path,
        """\
job: demo
steps:
  - {id: one, run: 'echo ran >> "$KEEP/one"; echo 1 > a'}
  - {id: two, run: 'echo ran >> "$KEEP/two"; echo edit >> source; rm -f doomed'}
  - {id: three, run: 'echo ran >> "$KEEP/three"; cat source > three.txt'}
""",
    )
    (site.origin / "doomed").write_text("soon gone")
    site.commit()
    first, second = site.machine("first"), site.machine("second")
    for machine in (first, first, second, second):
        machine.say()
        assert (machine.folder / "three.txt").read_text() == "text\nedit\n"
    assert site.counts() == [1, 1, 1]
    (first.folder / "source").write_text("mine\n")  # which is no step's edit
    first.say()
    assert site.counts() == [2, 2, 2]
    assert (first.folder / "three.txt").read_text() == "mine\nedit\n"
    first.say()
    assert site.counts() == [2, 2, 2]


def test_how_the_umask_makes_the_modes_of_a_checkout_does_not_count(tmp_path: Path) -> None:
    site = site_of(tmp_path, TWO)
    (site.keep / "fixed").touch()
    first, second = site.machine("first"), site.machine("second")
    first.say()
    for name in ("source", "checkpoint.yml"):
        (second.folder / name).chmod(0o664)
    assert "2 restored" in second.say()
    third = site.machine("third")
    (third.folder / "source").chmod(0o755)
    assert "2 done" in third.say()


def test_what_is_made_from_an_edit_does_not_serve_the_commit(tmp_path: Path) -> None:
    site = site_of(tmp_path, TWO)
    (site.keep / "fixed").touch()
    first, second = site.machine("first"), site.machine("second")
    (first.folder / "source").write_text("an edit\n")
    assert "'source' is not as in the commit, so nothing is put into the store" in first.say("--scope", "commit")
    assert "'source' is not as in the commit" in first.say("push", "--scope", "commit", code=1)
    assert site.archives() == []
    second.say("--scope", "commit")
    assert (second.folder / "b").read_text() == "text\n"


def test_a_step_that_edits_tracked_files_goes_on_to_serve_the_commit(tmp_path: Path) -> None:
    site = site_of(
        tmp_path, TWO.replace("cat source > a", "echo edit >> source; cat source > a").replace("[a]", "[a, source]")
    )
    first, second = site.machine("first"), site.machine("second")
    first.say("--scope", "commit", code=1)
    (site.keep / "fixed").touch()
    assert "nothing is put" not in first.say("--scope", "commit")
    assert "2 restored" in second.say("--scope", "commit")


def test_a_store_that_does_not_answer_is_no_store_without_checkpoints(tmp_path: Path) -> None:
    site = site_of(tmp_path, TWO)
    (site.keep / "fixed").touch()
    first = site.machine("first")
    (tmp_path / "file").write_text("no folder")
    broken = f"file://{tmp_path}/file"
    said = first.say("pull", "--store", broken, code=1)
    assert "Not a directory" in said
    assert "no checkpoint" not in said
    first.say()
    said = first.say("push", "--store", broken, code=1)
    assert "one: stays here: it did not get there" in said
    assert "put into" not in said


def test_what_is_forced_on_a_machine_whose_clock_is_late_serves_the_others(tmp_path: Path) -> None:
    site = site_of(tmp_path, TWO.replace("cat source > a", "date +%N > a"))
    (site.keep / "fixed").touch()
    first, second, third = (site.machine(name) for name in ("first", "second", "third"))
    first.say()
    (archive,) = (path for path in site.archives() if path.name.startswith("two~-"))
    parts = archive.name.split("-")
    parts[-2] = str(int(parts[-2]) + 86_400_000)  # it is a day ahead of the others
    archive.rename(archive.with_name("-".join(parts)))
    second.say("--force")
    third.say()
    assert (third.folder / "a").read_text() == (second.folder / "a").read_text()


def test_a_pull_says_of_a_step_that_waits_for_a_person_what_to_do(tmp_path: Path) -> None:
    job = TWO.replace("    outputs: [b]", "    outputs: [b]\n    on-crash: stop").replace(
        "cat a > b", "kill -9 $PPID; sleep 9"
    )
    site = site_of(tmp_path, job)
    first, second = site.machine("first"), site.machine("second")
    first.say(code=-9)
    assert "checkpoint-run accept two" in second.say("pull")
