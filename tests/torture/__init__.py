"""Everything at once: faults, load and hostile input, counted. ``docs/reliability.md`` has the figures."""
