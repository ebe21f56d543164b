"""What of this machine a run depends on, looked at one by one."""
