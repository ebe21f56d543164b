"""How git is asked; imports next to nothing, as a plan that is recalled asks before anything else is loaded."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # `typing` itself takes longer to load than all of this
if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["GIT", "LIST_IGNORED", "IgnoredBeside", "git_environment"]

_SETTINGS = (
    "safe.directory=*",  # in a container the checkout is often another user's
    "safe.bareRepository=explicit",  # a folder that only looks like a repository is none
    "core.fsmonitor=",  # which may name a program
    f"core.hooksPath={os.devnull}",
)
"""A repository may have been made by anybody: looking at it must not run what its own settings name."""


def _program() -> str:
    """Which git: on Windows not one that lies in the current folder, which the system would take first."""
    if sys.platform != "win32":
        return "git"
    folders = filter(os.path.isabs, os.environ.get("PATH", "").split(os.pathsep))
    found = (os.path.join(folder, "git.exe") for folder in folders)  # noqa: PTH118
    return next(filter(os.path.isfile, found), r"\no-git-on-path\git.exe")


GIT = (_program(), *(word for setting in _SETTINGS for word in ("-c", setting)))
"""The first words of each of our calls of git."""

LIST_IGNORED = (*GIT, "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
"""Names all that git ignores below the current folder."""


def git_environment(env: Mapping[str, str]) -> dict[str, str]:
    """An environment in which git looks at the folder it is started in; a hook's variables lead it elsewhere."""
    return {name: value for name, value in env.items() if not name.startswith("GIT_")}


class IgnoredBeside:
    """What git says it ignores, asked for while we look at something else.

    :raises OSError: there is no git.
    """

    def __init__(self, env: Mapping[str, str]) -> None:
        self._pid = 0
        self._reader, writer = os.pipe()
        if sys.platform == "win32":
            raise OSError("is not asked so")
        try:
            actions = [
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_DUP2, writer, 1),
                (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
            ]
            self._pid = os.posix_spawnp("git", LIST_IGNORED, git_environment(env), file_actions=actions)
        except BaseException:
            os.close(self._reader)
            raise
        finally:
            os.close(writer)

    def answer(self) -> bytes:
        """All of it.

        :raises OSError: git failed.
        """
        pieces = []
        while piece := os.read(self._reader, 1 << 16):
            pieces.append(piece)
        pid, self._pid = self._pid, 0
        if os.waitpid(pid, 0)[1] != 0:
            raise OSError("git failed")
        return b"".join(pieces)

    def close(self) -> None:
        """See that nothing is left of it."""
        os.close(self._reader)
        if self._pid:
            os.waitpid(self._pid, 0)
