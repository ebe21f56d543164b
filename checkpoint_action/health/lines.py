"""What a look at this machine found, for people and for programs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from checkpoint_action.health.finding import Finding

__all__ = ["finding_json", "finding_lines"]


def finding_lines(findings: Sequence[Finding]) -> list[str]:
    """A line each, with what to do in a line of its own."""
    width = max(len(finding.what) for finding in findings)
    lines = []
    for finding in findings:
        lines.append(f"{finding.level.value:<7}  {finding.what:<{width}}  {finding.found}")
        if finding.remedy:
            code = f" ({finding.code})" if finding.code else ""
            lines.append(f"{'':<{7 + 2 + width}}  -> {finding.remedy}{code}")
    return lines


def finding_json(findings: Sequence[Finding]) -> str:
    """``{"findings": [{"what", "level", "found", "remedy", "code"}]}``."""
    rows = [
        {
            "what": one.what,
            "level": one.level.value,
            "found": one.found,
            "remedy": one.remedy,
            "code": one.code,
        }
        for one in findings
    ]
    return json.dumps({"findings": rows})
