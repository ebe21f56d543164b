"""A pure-Python Actions toolkit. Knows nothing of checkpoints and is usable alone."""
