"""What starts the action: handover of the runner's values, dependencies, then the package. Standard library only."""
