from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import pytest

from checkpoint_action.toolkit.errors import (
    DeniedError,
    HttpStatusError,
    ProtocolError,
    ReservedError,
)
from tests.actions_service import ActionsService, Fault

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from checkpoint_action.toolkit.cache import Cache

VERSION = "a" * 64


def test_act_gets_a_bearer_even_where_there_is_none(service: ActionsService, make_cache: Callable[..., Cache]) -> None:
    make_cache("act").lookup(["job-1"], VERSION)
    assert service.requests[-1].headers["authorization"] == "Bearer none"


def test_a_key_in_capitals_is_found_where_the_server_lowers_it(make_cache: Callable[..., Cache], source: Path) -> None:
    cache = make_cache("act")
    cache.save("Job-ONE", VERSION, source)
    hit = cache.lookup(["Job-ONE"], VERSION)
    assert hit is not None
    assert (hit.key, hit.exact) == ("job-one", True)


def test_forgejo_forgets_a_reservation_with_404(
    service: ActionsService, make_cache: Callable[..., Cache], source: Path
) -> None:
    cache = make_cache("act")
    service.v1.manner = "forgejo"
    service.faults.next("reserve", Fault.status(200, '{"cacheId":77}'))
    with pytest.raises(HttpStatusError, match=r"cache upload at .* answered 404, cache 77: not found"):
        cache.save("job-1", VERSION, source)


@pytest.mark.parametrize("answer", ['{"message":"cache write denied: storage is full"}', "{}", '{"cacheId":-1}'])
def test_without_a_reservation_number_saves_nothing(
    service: ActionsService, make_cache: Callable[..., Cache], source: Path, answer: str
) -> None:
    service.faults.next("reserve", Fault.status(200, answer))
    with pytest.raises(DeniedError if "denied" in answer else ReservedError):
        make_cache("v1").save("job-1", VERSION, source)
    assert service.calls == {"reserve": 1}


@pytest.mark.parametrize("call", ["chunk", "commit"])
@pytest.mark.parametrize("manner", ["github", "act"])
def test_a_page_in_place_of_an_answer_is_no_success(
    service: ActionsService,
    make_cache: Callable[..., Cache],
    source: Path,
    call: str,
    manner: Literal["github", "act"],
) -> None:
    service.v1.manner = manner
    cache = make_cache("v1")
    service.faults.next(call, Fault.not_json(), times=2)
    cache.save("job-1", VERSION, source)
    assert cache.lookup(["job-1"], VERSION) is not None
    service.faults.next(call, Fault.not_json(), times=999)
    with pytest.raises(ProtocolError, match="answered 200 with a body that is no JSON"):
        cache.save("job-2", VERSION, source)
    assert cache.lookup(["job-2"], VERSION) is None


@pytest.mark.parametrize("call", ["reserve", "commit"])
def test_other_refusals_are_passed_on(
    service: ActionsService, make_cache: Callable[..., Cache], source: Path, call: str
) -> None:
    service.faults.next(call, Fault.status(400, '{"error":"too large"}'))
    with pytest.raises(HttpStatusError, match="answered 400, too large"):
        make_cache("v1").save("job-1", VERSION, source)
