"""Places outside this machine that keep layers and records."""
