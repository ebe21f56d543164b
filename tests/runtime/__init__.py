"""What starts the action."""
