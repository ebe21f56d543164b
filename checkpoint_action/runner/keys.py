"""Names under which a store keeps a job's archives."""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["KeyScheme", "Origin", "job_slug", "scheme_of", "shared_slug"]

_UNFIT = re.compile(r"[^a-z0-9._]+")
_TAIL = re.compile(r"(.+)-([^-]+)-([0-9]{1,18})-([0-9]{6,18})-[0-9a-f]{8}")
_WHOLE = re.compile(r"cpr1-([a-z0-9._]+)-((?:[a-z0-9._-]*?-)?[0-9a-f]{16})-(.+)")
_LONGEST_NUMBER = 18


def job_slug(name: str, identity: object) -> str:
    """A short name for a job that no other job shares.

    :param name: what people call it; only the first letters show.
    :param identity: JSON value of all that tells it from other jobs.
    """
    text = json.dumps(identity, sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    readable = _UNFIT.sub("-", name.lower()).strip("-")[:40].strip("-")
    return f"{readable}-{digest}" if readable else digest


class Origin(NamedTuple):
    """Where an archive comes from, as its key says; the greater, the newer.

    :param run: number of the run, 0 where it is none.
    :param step: id of the newest step in the archive, in lower case.
    """

    run: int
    attempt: int
    sequence: int
    step: str


@dataclass(frozen=True, slots=True)
class KeyScheme:
    """Keys ``cpr1-<scope>-<job>-<last step>-<run>-<attempt>-<sequence>-<nonce>``, in lower case.

    None is ever used twice, so that an upload that was cut off blocks no later one.

    :param scope: how far the checkpoints reach, with the run or commit they are bound to.
    :param job: from :func:`job_slug`.
    :param shared: whether several machines write at a time, so that each step's newest archive has to be found by its
        key. Then ``<last step>`` ends with a tilde, which no id has, and no step's keys begin as another's do.
    """

    scope: str
    job: str
    run: str
    attempt: str
    shared: bool = False

    @property
    def prefix(self) -> str:
        """What every key of the job in this scope begins with."""
        return f"cpr1-{self.scope}-{self.job}-".lower()

    def of_step(self, step: str) -> str:
        """What every key of an archive begins with whose newest step is ``step`` (or goes on after a hyphen)."""
        return f"{self.prefix}{step}{self._mark}-".lower()

    def of_step_in_run(self, step: str) -> str:
        """The same in this run alone, where hardly another step's key begins so."""
        return f"{self.of_step(step)}{self.run}-".lower()

    def origin(self, key: str) -> Origin | None:
        """What one of the job's keys says; ``None`` where it is none."""
        key = key.lower()
        match = _TAIL.fullmatch(key.removeprefix(self.prefix)) if key.startswith(self.prefix) else None
        if match is None:
            return None
        step, run, attempt, sequence = match.groups()
        number = int(run) if run.isascii() and run.isdigit() and len(run) <= _LONGEST_NUMBER else 0
        return Origin(number, int(attempt), int(sequence), step.removesuffix(self._mark))

    def new(self, last_step: str, sequence: int) -> str:
        """A key that was never used.

        :param last_step: id of the newest step in the archive.
        :param sequence: number of the archive in this run.
        """
        nonce = os.urandom(4).hex()
        return f"{self.of_step(last_step)}{self.run}-{self.attempt}-{sequence:06d}-{nonce}".lower()

    @property
    def _mark(self) -> str:
        return "~" if self.shared else ""


def scheme_of(key: str) -> KeyScheme | None:
    """The scheme that a key is of, with the run and attempt it names; ``None`` where it is none of ours."""
    whole = _WHOLE.fullmatch(key.lower())
    if whole is None:
        return None
    scope, job, rest = whole.groups()
    tail = _TAIL.fullmatch(rest)
    if tail is None:
        return None
    step, run, attempt, _sequence = tail.groups()
    return KeyScheme(scope, job, run, attempt, shared=step.endswith("~"))


def shared_slug(name: str, system: str, machine: str) -> str:
    """The short name of a job that whoever knows its name shares: people and CI systems that use one store.

    What one kind of machine makes is of no use to another.

    :param name: the job's.
    :param system: the operating system as GitHub's runners call it: ``Linux``, ``Windows``, ``macOS``.
    :param machine: the processor as GitHub's runners call it: ``X64``, ``ARM64``.
    """
    return job_slug(name, {"shared": name, "os": system, "arch": machine})
