"""What all tries with something scarce share."""

from __future__ import annotations

import errno
import itertools
import re
import shutil
import threading
from collections import Counter
from typing import TYPE_CHECKING

from tests.torture.network_machines import copies
from tests.torture.scarcity_scenes import Room
from tests.torture.trouble import CHANGES, READS, Trouble, calls_in, compiled

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.torture.outcome import Outcome
    from tests.torture.scarcity_scenes import Scene

__all__ = ["AT_ONCE", "ERRORS", "MANNERS", "STEP_FAILED", "Desk"]

AT_ONCE = 2
_NO_FILES = (errno.EMFILE, errno.ENFILE, errno.EACCES)

MANNERS: Mapping[tuple[str, ...], tuple[str, ...]] = {
    CHANGES: ("once", "from then on", "half written"),
    READS: ("once", "from then on"),
    ("lock",): ("once",),
}
"""How calls of each kind fail."""

ERRORS: Mapping[tuple[str, ...], tuple[int, ...]] = {
    CHANGES: (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, *_NO_FILES),
    READS: (errno.EIO, *_NO_FILES),
    ("lock",): (errno.ENOLCK,),
}
"""What they fail with."""


STEP_FAILED = re.compile(
    r"failed after .*(cannot prepare|cannot be used|cannot be read|cannot look at|cannot start)"
    r"|left.*could not be taken back.*the next run puts that right"
)
"""How a step ends that cannot be given its own files, or whose files nobody can look at, and one that must not run, as
its files were put back half-way."""


class Desk:
    """Rooms, the library that makes trouble, and what is counted.

    :param long: whether this is the long form.
    :ivar brisk: a copy of the package that waits less long.
    :ivar expected: the files that the job leaves when nothing is scarce.
    """

    def __init__(self, folder: Path, outcome: Outcome, *, long: bool) -> None:
        self.folder = folder
        self.outcome = outcome
        self.long = long
        self.library = compiled(folder)
        self.package, self.brisk = copies(folder)
        self._rooms = itertools.count(1)
        self._lock = threading.Lock()
        room = self.room(fixed=True)
        run = room.run(room.words())
        assert run.code == 0, run.said
        self.expected = room.files()

    def room(self, *, fixed: bool) -> Room:
        """A new room.

        :param fixed: whether the job's last step succeeds.
        """
        room = Room(self.new_folder(), self.package)
        if fixed:
            room.fix()
        return room

    def new_folder(self) -> Path:
        """The path of a folder that is not there yet."""
        return self.folder / f"room-{next(self._rooms)}"

    def clean(self, scene: Scene) -> Counter[str]:
        """How many calls of each kind count in a run without trouble."""
        room = self.room(fixed=False)
        scene.prepare(room)
        trouble = Trouble(scene.places(room), [kind for calls in MANNERS for kind in calls])
        log = room.folder.with_suffix(".calls")
        run = room.run(scene.words(room), trouble.environment(self.library, log))
        assert run.code == (1 if scene.fails else 0), run.said
        shutil.rmtree(room.folder)
        return Counter(kind for _met, kind, _path in calls_in(log))

    def count(self, what: str) -> None:
        """Count a try."""
        with self._lock:
            self.outcome.tried[what] += 1

    def fault(self, what: str) -> None:
        """Tell of something that is not as promised."""
        with self._lock:
            self.outcome.faults.append(what)
