"""The core: what decides, runs, records and keeps steps."""
