"""Files to and from signed URLs, in the Azure Blob dialect that cache v2 and artifacts share.

A signed URL is used exactly as it came: what has to be added is appended to its text.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from checkpoint_action.toolkit.blob_download import DownloadPlan, Excerpt, download, read_range
from checkpoint_action.toolkit.blob_upload import BlockUpload, Part, UploadPlan, upload, upload_blocks

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "BlockUpload",
    "DownloadPlan",
    "Excerpt",
    "Part",
    "UploadPlan",
    "download",
    "mask_signature",
    "read_range",
    "upload",
    "upload_blocks",
]


def mask_signature(url: str, mask: Callable[[str], None]) -> None:
    """Hand the signature in a signed URL to ``mask``, as it stands there and in plain."""
    for name in ("sig", "X-Amz-Signature", "X-Goog-Signature"):
        for value in re.findall(rf"[?&]{name}=([^&#]+)", url):
            for form in dict.fromkeys((value, unquote(value), quote(unquote(value), safe=""))):
                mask(form)
