"""Measurements of checkpoint-run beside other tools; see docs/performance.md."""
