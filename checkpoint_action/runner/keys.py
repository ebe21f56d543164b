"""Names under which a store keeps a job's archives."""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import dataclass

__all__ = ["KeyScheme", "job_slug"]

_UNFIT = re.compile(r"[^a-z0-9._]+")


def job_slug(name: str, identity: object) -> str:
    """A short name for a job that no other job shares.

    :param name: what people call it; only the first letters show.
    :param identity: JSON value of all that tells it from other jobs.
    """
    text = json.dumps(identity, sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    readable = _UNFIT.sub("-", name.lower()).strip("-")[:40].strip("-")
    return f"{readable}-{digest}" if readable else digest


@dataclass(frozen=True, slots=True)
class KeyScheme:
    """Keys ``cpr1-<scope>-<job>-<last step>-<run>-<attempt>-<sequence>-<nonce>``, in lower case.

    None is ever used twice, so that an upload that was cut off blocks no later one.

    :param scope: how far the checkpoints reach, with the run or commit they are bound to.
    :param job: from :func:`job_slug`.
    """

    scope: str
    job: str
    run: str
    attempt: str

    @property
    def prefix(self) -> str:
        """What every key of the job in this scope begins with."""
        return f"cpr1-{self.scope}-{self.job}-".lower()

    def new(self, last_step: str, sequence: int) -> str:
        """A key that was never used.

        :param last_step: id of the newest step in the archive.
        :param sequence: number of the archive in this run.
        """
        nonce = os.urandom(4).hex()
        return f"{self.prefix}{last_step}-{self.run}-{self.attempt}-{sequence:06d}-{nonce}".lower()
