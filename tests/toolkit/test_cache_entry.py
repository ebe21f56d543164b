from __future__ import annotations

import pytest

from checkpoint_action.toolkit.cache_entry import cache_version


@pytest.mark.parametrize(
    ("paths", "compression", "windows_only", "version"),
    [
        (["data"], "zstd-without-long", False, "3ad75f27293d65a135214b8c82b296080f911dc107e52f1e7ec871a2eda46e69"),
        (["data"], "gzip", False, "d603b013f22c8e30817c9ff51eada3c319f1ee747f362db3bb3d583b5c6153ff"),
        (["data"], "zstd", False, "a6af54e9608e22db0505d6ea875865e6a8d892368b7c02558495b19850c02fb9"),
        (["a", "b/c"], "zstd-without-long", False, "4eaff2ddb96e13beae06cdbd6c150e17bf4f96e6c77828c0a8abafd1f53e99d8"),
        (["data"], "zstd-without-long", True, "8d40e106a2609e27ada41c3ce8065810c71929369d450aea2fb8325de0851d26"),
    ],
)
def test_versions_are_those_of_the_official_client(
    paths: list[str], compression: str, windows_only: bool, version: str
) -> None:
    assert cache_version(paths, compression, windows_only=windows_only) == version


def test_a_path_that_is_no_text_has_the_version_that_node_would_give_it() -> None:
    assert cache_version(["a\udcff\udcc3("]) == cache_version(["a\ufffd\ufffd("])
