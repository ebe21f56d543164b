"""Fuzzed: job files, the files of a job's state, and the files through which steps hand values on."""

from __future__ import annotations

import hashlib
import os
import subprocess
import zlib
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from checkpoint_action.errors import JobFileError, StateError, UsageError
from checkpoint_action.jobfile.resolve import JobDefaults, load_job, load_steps, read_job_file
from checkpoint_action.jobfile.values import is_name
from checkpoint_action.model import ArchiveRef, Entry, Layer, Partial, Record, Status, Values
from checkpoint_action.report.glance import glanced
from checkpoint_action.runner.digest_index import kept_digests, read_index, write_index
from checkpoint_action.runner.journal import StatePaths, load
from checkpoint_action.runner.recall import recalled
from checkpoint_action.runner.seals import CHECKSUM, CRC
from checkpoint_action.runner.statefile import (
    DamagedError,
    Snapshot,
    forgetting_line,
    journal_line,
    read_snapshot,
    write_snapshot,
)
from checkpoint_action.runner.value_files import ValueFileError, ValueFiles, parse_paths, parse_values
from tests.console import PROGRAM, environment
from tests.torture.fuzz_target import Target

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["TARGETS", "sample_records"]

_JOB = """\
job: release
shell: bash
env: {PROFILE: release}
pass-env: [CI_COMMIT]
secrets: [PUBLISH_TOKEN]
working-directory: .
budget: 5h30m
max-failures: 3
defaults: {timeout: 1h, retry: {max: 2, on: [error, timeout, 75], backoff: 1s, backoff-max: 60s}}
steps:
  - id: fetch
    run: curl -fL -C - -o model.bin https://example.com/model.bin
    partial: [model.bin]
    outputs: [model.bin]
    wait-online: example.com:443
  - id: build
    inputs: [src/**, Makefile]
    run: |
      make -j4
    outputs: [dist/]
    idle-timeout: 10m
  - {id: publish, needs: [build], run: "./publish.sh dist/", on-crash: stop, always: true, leftovers: kill}
"""
_ALIASES = """\
a: &a [x, x, x, x, x, x, x, x, x]
b: &b [*a, *a, *a, *a, *a, *a, *a, *a]
steps: &s
- {id: a, run: x, needs: *b, inputs: *a, env: &e {A: "1"}}
- {id: b, run: x, env: *e, outputs: *a}
"""


def _job_file(folder: Path) -> Callable[[bytes], bool]:
    defaults = JobDefaults("job", folder, folder)
    path = folder / "checkpoint.yml"

    def check(data: bytes) -> bool:
        path.write_bytes(data)
        try:
            text = read_job_file(path, "checkpoint.yml")
            job = load_steps(text, "steps", defaults) if text.startswith("-") else load_job(text, "f", defaults)
        except JobFileError as error:
            return not _is_place(error.line, error.column)
        except UsageError:
            return False
        ids = [step.id for step in job.steps]
        assert is_name(job.name)
        assert all(map(is_name, ids))
        assert all(set(step.needs) <= set(ids[:number]) for number, step in enumerate(job.steps))
        return True

    return check


def _is_place(line: int, column: int) -> bool:
    assert line > 0, "a place outside of the file"
    assert column > 0, "a place outside of the file"
    return True


def sample_records() -> list[Record]:
    """Records with all that a record can have."""
    entries = (
        Entry("dist/app", "file", 0o755, 1_700_000_000_123_456_789, 3, hashlib.sha256(b"app").hexdigest()),
        Entry("dist", "dir", 0o755, 1),
        Entry("dist/link", "link", 0o777, 1, target="app"),
    )
    layer = Layer(entries, ("gone",), {"gone": "dir"})
    values = Values({"A": "1"}, ("/bin",), {"out": "two\nlines"}, "# said")
    archive = ArchiveRef("cpr1-run-release-build-1-1-000001-0123abcd", "build")
    return [
        Record("fetch", Status.DONE, "f" * 64, "curl", exit_code=0, tries=1, started=1.5, duration=2.0, layer=layer),
        Record("build", Status.FAILED, "f" * 64, "make", exit_code=2, tries=3, error="it failed", log="logs/build.log"),
        Record("test", Status.RUNNING, "f" * 64, "make", {"command": "0" * 64}, values=values, archive=archive),
        Record("publish", Status.INTERRUPTED, "f" * 64, "x", signal=9, partial=Partial(layer, Layer(), archive)),
    ]


def _journals() -> list[bytes]:
    lines = [journal_line(1, None, "release")]
    lines += [journal_line(2 + number, record) for number, record in enumerate(sample_records())]
    whole = b"".join(lines) + forgetting_line(9, ["test"]) * 2
    return [whole, b"=" + whole, whole[:-20], b"".join(line[:-1] for line in lines), b""]


def _snapshots() -> list[bytes]:
    records = {record.step: record for record in sample_records()}
    whole = write_snapshot("release", Snapshot(7, records), ("m" * 64, list(records)))
    return [whole, b"=" + whole, write_snapshot("release", Snapshot(0, {})), whole[:-30]]


def _sealed_journal(data: bytes) -> bytes:
    """Each line with the sum that fits it."""
    start = len(CRC) + 10
    return b"\n".join(
        b'%b%08x",%b' % (CRC, zlib.crc32(line[start:]), line[start:]) if line else b"" for line in data.split(b"\n")
    )


def _sealed_snapshot(data: bytes) -> bytes:
    body, mark, _rest = data.rpartition(CHECKSUM)
    return body + mark + b'%08x"\n}\n' % zlib.crc32(body) if mark else data


def _state(folder: Path, *, is_snapshot: bool) -> Callable[[bytes], bool]:
    """The two files of a job's state, the one fuzzed. A ``=`` in front: with sums that fit, as a forger has them."""
    paths = StatePaths(folder, "release")
    paths.snapshot.write_bytes(_snapshots()[0])
    paths.journal.write_bytes(_journals()[0])
    fuzzed, seal = (paths.snapshot, _sealed_snapshot) if is_snapshot else (paths.journal, _sealed_journal)

    def check(data: bytes) -> bool:
        fuzzed.write_bytes(seal(data[1:]) if data[:1] == b"=" else data)
        glanced(["status", "--job", "release", "--state-dir", str(folder)])
        try:
            loaded = load(paths)
        except StateError:
            return False
        again = read_snapshot(write_snapshot("release", Snapshot(loaded.sequence, loaded.records)), "again")
        assert again.records == loaded.records, "not the same when it is written and read again"
        if is_snapshot:
            with suppress(DamagedError, StateError):
                read_snapshot(fuzzed.read_bytes(), "snapshot")
        return not loaded.warnings

    return check


def _plan(folder: Path) -> Callable[[bytes], bool]:
    """What a run keeps for ``plan``. A ``=`` in front: with a digest that fits; words in capitals are what is true."""
    job_file, path = folder / "checkpoint.yml", folder / ".checkpoint-run-release.plan"
    job_file.write_text("job: release\nsteps:\n- {id: a, run: 'echo a > a', outputs: [a]}\n")
    asks = ["-f", str(job_file), "--state-dir", str(folder)]
    for words in (["run", "--quiet", *asks], ["plan", *asks]):
        subprocess.run([PROGRAM, *words], cwd=folder, env=environment(), capture_output=True, check=True)
    head, _, body = path.read_bytes().partition(b"\n")
    true = dict(zip((b"KEY", b"STAMPS", b"CONTENTS"), body.split(b"\0\0"), strict=False))
    true[b"HERE"] = os.fsencode(folder)
    number = head.split()[2]
    questions = [[*verb, *asks] for verb in (["plan"], ["plan", "--json"], ["plan", "--verify", "stat"])]

    def check(data: bytes) -> bool:
        if data[:1] == b"=":
            body = data[1:]
            for word, value in true.items():
                body = body.replace(word, value)
            data = b"checkpoint-run plan %b %b\n%b" % (number, hashlib.sha256(body).hexdigest().encode(), body)
        path.write_bytes(data)
        here = Path.cwd()
        os.chdir(folder)  # which is part of the question
        try:
            replies = [recalled(question, {}) for question in questions]
        finally:
            os.chdir(here)
        for reply in replies:
            if reply is not None:
                reply.text.encode("ascii")  # as it is written then
        return any(reply is not None for reply in replies)

    return check


def _plan_seeds() -> list[bytes]:
    fields = [b"KEY", b"STAMPS", b"CONTENTS", b"a  skip\n", b'{"job": "release"}\n', b"said ", b" s\n", b"0"]
    lists = [b"HOME\0PATH", b"HERE/a", b"HERE", b"HERE", b"HERE", b"HERE/a", b"bash\n", b"TOKEN"]
    good = b"=" + b"\0\0".join([*fields, *lists])
    return [good, b"=" + b"\0\0".join([*fields, b"", b"HERE/a", *[b""] * 6]), good[1:], b"="]


def _index(folder: Path) -> Callable[[bytes], bool]:
    """What is known of files. A ``=`` in front: with a digest that fits."""
    path = folder / ".checkpoint-run-release.index"
    (folder / "a").write_text("a")

    def check(data: bytes) -> bool:
        if data[:1] == b"=":
            body = data[1:].replace(b"HERE", os.fsencode(folder))
            data = b"checkpoint-run index 1 %s\n" % hashlib.sha256(body).hexdigest().encode() + body
        path.write_bytes(data)
        known = read_index(path)
        if len(data) % 8 == 0:
            with kept_digests(path, lost=lambda said: None):
                pass
            write_index(path, known)
            assert read_index(path) == known
        return bool(known)

    return check


def _index_seeds() -> list[bytes]:
    body = b"HERE/a\x001 2 3 4 5 33188 " + b"0" * 64 + b"\0" + b"/etc/hosts\x001 2 3\0"
    return [b"=" + body, b"checkpoint-run index 1 00\n" + body, b"="]


def _is_line(text: str) -> bool:
    assert not {*"\r\n"} & {*text}, "an error of several lines"
    return True


def _values(folder: Path) -> Callable[[bytes], bool]:
    """The files of a step, all with the same content."""

    def check(data: bytes) -> bool:
        files = ValueFiles(folder, "t")
        try:
            for path in set(files.variables().values()):
                Path(path).write_bytes(data)
            with suppress(ValueFileError):
                parse_paths(data.decode("utf-8", "surrogateescape"))
            with suppress(ValueFileError):
                parse_values(data.decode("latin-1"))
            try:
                values = files.read()
            except ValueFileError as error:
                return not _is_line(str(error))
        finally:
            files.remove()
        texts = [*values.env, *values.env.values(), *values.path, *values.outputs.values()]
        assert not any("\0" in text for text in texts), "a NUL in a value"
        assert "" not in values.env
        return True

    return check


_VALUE_SEEDS = [
    b"NAME=value\nOTHER=a=b<<c\n\nLONG<<END\none\ntwo\nEND\n",
    b"A<<E\r\none\r\nE\r\n",
    b"/usr/bin\n/opt\r\n",
    "A=1\nB=\u00e9\n".encode("utf-16"),
    b"# Summary\n| a | b |\n|---|---|\n",
]


def _texts(*texts: str) -> Callable[[], Sequence[bytes]]:
    return lambda: [text.encode() for text in texts]


_JOB_WORDS = [
    *(
        b"&a ",
        b"*a",
        b"<<: *a",
        b"!!null ",
        b"!!python/object:os.system ",
        b"%YAML 1.1\n",
        b"---\n",
        b"? ",
        b"|\n",
        b">-\n",
    ),
    *(
        b"steps:",
        b"needs: [a]\n",
        b"shell: 'x {0}'\n",
        b"timeout: 1h30m\n",
        b"1e9h",
        b"\xe2\x80\xa8",
        b"interactive: true\n",
    ),
]
_SNAPSHOT_WORDS = [CHECKSUM, b'"format": 2', b'"steps": {', b'"sequence": 1e999']
_STEPS = _JOB.partition("steps:\n")[2].replace("\n  ", "\n")[2:]

TARGETS = (
    Target("job-file", _job_file, _texts(_JOB, _ALIASES, _STEPS, "- {id: a, run: b}\n"), _JOB_WORDS),
    Target("journal", lambda at: _state(at, is_snapshot=False), _journals, [CRC, b'"record":', b'"forgotten":["a"]']),
    Target("snapshot", lambda at: _state(at, is_snapshot=True), _snapshots, _SNAPSHOT_WORDS),
    Target("plan", _plan, _plan_seeds, [b"\0\0", b"/proc/self/mem", b"/dev/zero", b"HERE", b"KEY", b"\xff"]),
    Target("index", _index, _index_seeds, [b"HERE/a", b"\0", b"/proc/self/fd/0"]),
    Target("values", _values, lambda: _VALUE_SEEDS, [b"<<", b"=", b"<<EOF\n", b"EOF\n", b"\xff\xfe", b"\xfe\xff"]),
)
