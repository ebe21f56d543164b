"""Stores as people name them."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from checkpoint_action.errors import UsageError
from checkpoint_action.store.folder import FolderStore
from checkpoint_action.store.objects import ObjectStore
from checkpoint_action.store.urls import store_for

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("name", ["plain", "with space", "ünï", "100%", "a#b", "a?b"])
def test_a_folders_url_leads_to_it(tmp_path: Path, name: str) -> None:
    if sys.platform == "win32" and "?" in name:
        pytest.skip("no name there")
    folder = tmp_path / name
    source = tmp_path / "source"
    source.write_bytes(b"content")
    for url in (folder.as_uri(), folder.as_uri() + "/", folder.as_uri().replace("file:///", "file://localhost/")):
        store = store_for(url)
        assert isinstance(store, FolderStore)
        assert store.name == f"the folder {folder}"
    store.save("key", source)
    assert (folder / "key.tar.zst").read_bytes() == b"content"


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("bucket/prefix", "is no URL"),
        ("", "is no URL"),
        ("s3:bucket", "is no URL"),
        ("x9://bucket", "s3://bucket/prefix"),
        ("gcs://bucket", "did you mean 'gs'"),
        ("azure://container", "did you mean 'az'"),
        ("abfss://container", "did you mean 'az'"),
        ("flie:///folder", "did you mean 'file'"),
        ("S3://bucket", "did you mean 's3'"),
        ("https://example.com", "file:///folder, s3://bucket/prefix, gs://bucket/prefix or az://container/prefix"),
        ("s3://", "cannot be a bucket"),
        ("s3:///prefix", "cannot be a bucket"),
        ("s3://bu cket", "cannot be a bucket"),
        ("gs://bucket/a/../b", "a prefix has"),
        ("gs://bucket/a//b", "a prefix has"),
        ("s3://bucket/a\nb", "a prefix has"),
        ("s3://bucket?region=x", "have no meaning"),
        ("file:///", "whole path"),
        ("file:///a?b", "%3F"),
        ("file:///a%00b", "zero byte"),
        ("file://]a", "a folder's whole path is needed"),
        ("file://[a/b", "a folder's whole path is needed"),
    ],
)
def test_a_mistake_is_one_line_that_says_what_to_write(url: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        store_for(url)
    text = str(caught.value)
    assert said in text
    assert "\n" not in text


@pytest.mark.skipif(sys.platform == "win32", reason="there it is a share")
def test_two_slashes_too_few_are_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="three slashes"):
        store_for("file://folder/sub")


@pytest.mark.parametrize("url", ["s3://AKIA:geheim@bucket", "s3://bucket/?secret=geheim", "xx://u:geheim@host/a"])
def test_a_secret_in_a_url_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        store_for(url)
    assert "geheim" not in str(caught.value)


def test_without_the_extra_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore.store", None)
    with pytest.raises(UsageError, match=r"pip install 'checkpoint-run\[cloud\]'") as caught:
        store_for("s3://bucket/prefix")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("url", ["s3://bucket/some/prefix/", "gs://bucket", "az://container/prefix"])
def test_a_buckets_url_is_opened_without_asking_anybody(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("obstore")
    for name in os.environ:
        if name.startswith(("AWS_", "AZURE_", "GOOGLE_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "account")
    store = store_for(url)
    assert isinstance(store, ObjectStore)
    assert store.name == url.rstrip("/")


def test_an_environment_that_cannot_be_used_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("obstore")
    for name in os.environ:
        if name.startswith("AZURE_"):
            monkeypatch.delenv(name)
    with pytest.raises(UsageError, match="az://container: the environment does not give access") as caught:
        store_for("az://container")
    assert "\n" not in str(caught.value)
