"""What folders and zips hold."""

from __future__ import annotations

import io
import zipfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["made", "there"]


def there(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def made(**files: bytes) -> bytes:
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w") as opened:
        for name, content in files.items():
            opened.writestr(name, content)
    return body.getvalue()
