"""What :mod:`benchmarks.store` is limited by: one save or one restore with nothing but `tar`, `zstd` and `curl`.

::

    python -m benchmarks.store_limit save|restore ARCHIVE KEY

The folder `out` of the current one goes up and comes down again, through the service that the ``ACTIONS_*`` variables
name: `tar -I 'zstd -T0'` into a file and a PUT of it, as a service wants to know the length before; a GET straight into
`tar -x`. Nothing is looked at, hashed or checked. Prints one JSON object: the seconds it took.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]

_CURL = ("curl", "--silent", "--show-error", "--fail")
_SERVICE = "twirp/github.actions.results.api.v1.CacheService"
_VERSION = "0" * 64


def main(argv: Sequence[str] | None = None) -> int:
    """Save or restore once."""
    verb, archive, key = sys.argv[1:] if argv is None else argv
    begin = time.perf_counter()
    if verb == "save":
        _save(Path(archive), key)
    else:
        _restore(key)
    print(json.dumps({"seconds": time.perf_counter() - begin}))
    return 0


def _save(archive: Path, key: str) -> None:
    subprocess.run(["tar", "-I", "zstd -T0", "-cf", str(archive), "out"], check=True)
    url = _ask("CreateCacheEntry", key=key)["signed_upload_url"]
    headers = ("-H", "x-ms-blob-type: BlockBlob", "-H", "Expect:")
    subprocess.run([*_CURL, *headers, "-T", str(archive), url], check=True)
    _ask("FinalizeCacheEntryUpload", key=key, size_bytes=archive.stat().st_size)


def _restore(key: str) -> None:
    url = _ask("GetCacheEntryDownloadURL", key=key, restore_keys=[])["signed_download_url"]
    with subprocess.Popen([*_CURL, url], stdout=subprocess.PIPE) as curl:
        subprocess.run(["tar", "-I", "zstd", "-xf", "-"], stdin=curl.stdout, check=True)
    if curl.returncode:
        raise SystemExit(f"curl ended with {curl.returncode}")


def _ask(method: str, **fields: object) -> dict[str, str]:
    """One call of the service's API."""
    words = ["-H", f"Authorization: Bearer {os.environ['ACTIONS_RUNTIME_TOKEN']}"]
    words += ["-H", "Content-Type: application/json", "-d", json.dumps({"version": _VERSION, **fields})]
    url = f"{os.environ['ACTIONS_RESULTS_URL']}{_SERVICE}/{method}"
    done = subprocess.run([*_CURL, *words, url], stdout=subprocess.PIPE, check=True)
    answer: dict[str, str] = json.loads(done.stdout)
    if not answer["ok"]:
        raise SystemExit(f"{method}: {answer}")
    return answer


if __name__ == "__main__":
    sys.exit(main())
