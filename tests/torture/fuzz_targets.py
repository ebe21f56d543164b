"""All that is fuzzed, by name."""

from __future__ import annotations

from tests.torture import fuzz_archives, fuzz_reports, fuzz_service, fuzz_state

__all__ = ["TARGETS"]

TARGETS = {
    target.name: target
    for target in (*fuzz_state.TARGETS, *fuzz_archives.TARGETS, *fuzz_service.TARGETS, *fuzz_reports.TARGETS)
}
