"""Draws docs/resumed-run.svg: what two runs of a job really print, the first of which is killed in its third step.

``python .ci/resumed_run.py`` runs them in an empty folder and writes the picture.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from html import escape
from pathlib import Path

__all__ = ["drawn", "main", "printed"]

PICTURE = Path(__file__).resolve().parent.parent / "docs" / "resumed-run.svg"

JOB = """\
job: release
steps:
  - {id: fetch, run: sleep 1.2; echo data > data, outputs: [data]}
  - {id: build, run: sleep 2.1; echo built > app, outputs: [app]}
  - id: test
    run: if [ -e tried ]; then sleep 0.4; else touch tried; kill -9 $PPID; sleep 60; fi
  - {id: publish, run: sleep 0.2}
"""

LINE, CHAR, MARGIN = 20, 8.43, 20
STYLE = """\
text { font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; fill: #24292f; white-space: pre; }
.frame { fill: #f6f8fa; stroke: #d0d7de; }
.prompt { fill: #57606a; } .done { fill: #1a7f37; } .skip { fill: #0969da; } .bad { fill: #cf222e; }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3; } .frame { fill: #161b22; stroke: #30363d; }
.prompt { fill: #8b949e; } .done { fill: #3fb950; } .skip { fill: #58a6ff; } .bad { fill: #ff7b72; }
}"""


def printed() -> list[tuple[str, str]]:
    """The lines of both runs, each with its class."""
    lines: list[tuple[str, str]] = []
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "checkpoint.yml").write_text(JOB, encoding="utf-8")
        for _ in range(2):
            lines.append(("prompt", "$ checkpoint-run"))
            ended = subprocess.run(
                [sys.executable, "-m", "checkpoint_action", "run"],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                encoding="utf-8",
                check=False,
            )
            said = [line.removeprefix("checkpoint-run: ") for line in ended.stderr.splitlines()]
            lines += [(_kind(line), line.partition("; its log")[0]) for line in said if _is_shown(line)]
            if ended.returncode < 0:
                lines += [("bad", "Killed"), ("", "")]
    return lines


def _is_shown(line: str) -> bool:
    return "note: steps run" not in line and not (line.endswith("runs (never-ran)") and "test" not in line)


def _kind(line: str) -> str:
    for word, kind in (("skipped (", "skip"), (": done in", "done"), ("runs (", "prompt")):
        if word in line:
            return kind
    return ""


def drawn(lines: list[tuple[str, str]]) -> str:
    """The lines as a picture for light and dark pages."""
    width = round(max(len(text) for _, text in lines) * CHAR + 2 * MARGIN)
    height = len(lines) * LINE + 2 * MARGIN
    told = escape("; ".join(text for _, text in lines if text))
    rows = [
        f'<text x="{MARGIN}" y="{MARGIN + LINE * number + 14}" class="{kind or "said"}">{escape(text)}</text>'
        for number, (kind, text) in enumerate(lines)
        if text
    ]
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
            f"<title>Two runs of one job: the first is killed in its third step</title><desc>{told}</desc>",
            f"<style>{STYLE}</style>",
            f'<rect class="frame" x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="8"/>',
            *rows,
            "</svg>\n",
        ]
    )


def main() -> int:
    """Run, and write the picture."""
    PICTURE.write_text(drawn(printed()), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
