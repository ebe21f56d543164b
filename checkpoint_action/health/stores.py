"""The store that a run would use."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from checkpoint_action.errors import StoreError, UsageError
from checkpoint_action.health.finding import good, problem, warning

if TYPE_CHECKING:
    from checkpoint_action.health.finding import Finding

__all__ = ["stores"]

_WHAT = "store"
_NONE_SUCH = "cpr1-doctor-"
_NAME_IT = "name it as docs/stores.md says, in --store or CHECKPOINT_STORE"
_CHECK_IT = "check address, network and credentials (docs/stores.md); jobs run all the same, but nothing is kept there"


def stores(url: str) -> list[Finding]:
    """Whether it answers a look-up; nothing is written there. Nothing where no store is named.

    :param url: of the store; empty or ``none`` for none.
    """
    if url in ("", "none"):
        return []
    from checkpoint_action.store.urls import store_for  # noqa: PLC0415  # only where one is named

    begun = time.monotonic()
    try:
        place = store_for(url)
        place.find(_NONE_SUCH)
    except UsageError as error:
        return [
            problem(_WHAT, str(error), "name it as docs/stores.md says, in --store or CHECKPOINT_STORE", error.kind)
        ]
    except StoreError as error:
        remedy = (
            "check address, network and credentials (docs/stores.md); jobs run all the same, but nothing is kept there"
        )
        return [warning(_WHAT, str(error), remedy)]
    return [good(_WHAT, f"{place.name} answers in {(time.monotonic() - begun) * 1000:.0f} ms")]
