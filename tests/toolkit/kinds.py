"""The servers that the cache client is tested with, and what each calls the steps of a save and a restore."""

from __future__ import annotations

__all__ = ["CLOSE", "KINDS", "LOOKUP", "PART", "READ", "RESERVE"]

KINDS = ["v2", "gitea", "v1", "act"]
V2 = {"lookup": "GetCacheEntryDownloadURL", "reserve": "CreateCacheEntry", "part": "PutBlock"}
V2 |= {"close": "FinalizeCacheEntryUpload", "read": "GetBlob"}
V1 = {"lookup": "lookup", "reserve": "reserve", "part": "chunk", "close": "commit", "read": "archive"}
CALLS = {"v2": V2, "gitea": V2, "v1": V1, "act": V1}
LOOKUP, RESERVE, PART, CLOSE, READ = (
    {kind: calls[role] for kind, calls in CALLS.items()} for role in ("lookup", "reserve", "part", "close", "read")
)
