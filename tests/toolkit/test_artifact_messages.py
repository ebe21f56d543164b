from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkpoint_action.toolkit.artifact_messages import (
    Artifact,
    artifact_of,
    check_name,
    check_path,
    expiry,
    file_name,
    newest_of_each_name,
)
from checkpoint_action.toolkit.errors import InputError, ProtocolError

FORBIDDEN_IN_PATHS = '":<>|*?\r\n'
FORBIDDEN_IN_NAMES = FORBIDDEN_IN_PATHS + "\\/"
MOMENT = datetime(2026, 3, 4, 5, 6, 7, tzinfo=timezone.utc)


@pytest.mark.parametrize("character", FORBIDDEN_IN_NAMES)
def test_a_forbidden_character_in_a_name_is_refused(character: str) -> None:
    with pytest.raises(InputError, match="line break in it"):
        check_name(f"a{character}")


@pytest.mark.parametrize("character", FORBIDDEN_IN_PATHS + "\\")
def test_a_forbidden_character_in_a_path_is_refused(character: str) -> None:
    with pytest.raises(InputError, match="line break in it"):
        check_path(f"a/{character}")


@pytest.mark.parametrize("check", [check_name, check_path])
def test_nothing_is_no_name(check: object) -> None:
    assert callable(check)
    with pytest.raises(InputError):
        check("")


def test_a_path_must_be_text() -> None:
    with pytest.raises(InputError, match="must be text"):
        check_path("caf\udce9")


@given(st.text(st.characters(exclude_characters=FORBIDDEN_IN_NAMES, exclude_categories=["Cs"]), min_size=1))
def test_all_other_names_are_taken(name: str) -> None:
    check_name(name)
    check_path(f"{name}/{name}")


ITEM = {
    "workflow_run_backend_id": "run",
    "workflow_job_run_backend_id": "job",
    "database_id": "9007199254740993",
    "name": "logs",
    "size": "12",
    "created_at": "2026-03-04T05:06:07Z",
    "digest": "sha256:ab",
}
READ = Artifact("logs", 9007199254740993, 12, MOMENT, "sha256:ab", "run", "job")


def test_an_item_is_read_in_both_spellings() -> None:
    camel = {
        "workflowRunBackendId": "run",
        "workflowJobRunBackendId": "job",
        "databaseId": 9007199254740993,
        "name": "logs",
        "size": 12,
        "createdAt": "2026-03-04T05:06:07.000000000Z",
        "digest": "sha256:ab",
        "unknown": {},
    }
    assert artifact_of(ITEM) == artifact_of(camel) == READ


def test_an_item_of_rest_is_read() -> None:
    item = {"id": 5, "name": "logs", "size_in_bytes": 12, "created_at": "2026-03-04T05:06:07Z", "digest": None}
    assert artifact_of(item) == Artifact("logs", 5, 12, MOMENT)


def test_what_is_left_out_is_the_default() -> None:
    assert artifact_of({"name": "logs", "database_id": "1"}) == Artifact("logs", 1)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-03-04T05:06:07.5Z", MOMENT + timedelta(milliseconds=500)),
        ("2026-03-04T05:06:07.123456789Z", MOMENT + timedelta(microseconds=123456)),
        ("2026-03-04T07:06:07+02:00", MOMENT),
        ("yesterday", None),
        ("2026-99-04T05:06:07Z", None),
    ],
)
def test_times_are_read_as_far_as_they_can_be(text: str, moment: datetime | None) -> None:
    assert artifact_of({**ITEM, "created_at": text}).created_at == moment


@pytest.mark.parametrize("item", [None, [], {"name": "x"}, {"database_id": "1"}, {**ITEM, "size": "many"}])
def test_what_is_no_artifact_is_refused(item: object) -> None:
    with pytest.raises(ProtocolError):
        artifact_of(item)


def test_the_newest_of_a_name_is_the_one_created_last_whatever_its_number() -> None:
    old = Artifact("a", 20, created_at=MOMENT)
    new = Artifact("a", 10, created_at=MOMENT + timedelta(seconds=1))
    other = Artifact("b", 15, created_at=MOMENT + timedelta(seconds=2))
    assert newest_of_each_name([old, new, other]) == [other, new]


def test_where_no_times_are_told_the_highest_number_is_the_newest() -> None:
    assert newest_of_each_name([Artifact("a", 1), Artifact("a", 3), Artifact("a", 2)]) == [Artifact("a", 3)]


def test_an_expiry_is_written_as_the_service_reads_it() -> None:
    assert expiry(1, now=MOMENT.timestamp()) == "2026-03-05T05:06:07.000Z"


@pytest.mark.parametrize(
    ("disposition", "name"),
    [
        ('attachment; filename="a b.txt"', "a b.txt"),
        ("attachment; filename=a.txt", "a.txt"),
        ("attachment; filename=\"a__.txt\"; filename*=UTF-8''a%C3%BC%20.txt", "aü .txt"),
        ("attachment; filename*=utf-8'de'a%C3%BC.txt", "aü.txt"),
        ('attachment; filename="../../etc/passwd"', "passwd"),
        ("attachment; filename*=UTF-8''..%2F..%2Fetc%2Fpasswd", "passwd"),
        ('attachment; filename="..\\\\x"', "x"),
        ('attachment; filename=".."', ""),
        ("attachment; filename*=UTF-8''a%00b", ""),
        ("attachment", ""),
        ("", ""),
    ],
)
def test_a_file_name_comes_without_its_folder(disposition: str, name: str) -> None:
    assert file_name(disposition) == name


@given(st.text())
def test_no_disposition_leads_to_a_folder(disposition: str) -> None:
    for text in (disposition, f"attachment; filename={disposition}", f'attachment; filename="{disposition}"'):
        name = file_name(text)
        assert "/" not in name
        assert name not in {".", ".."}
