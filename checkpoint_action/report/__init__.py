"""What a person sees: each reporter listens to the events of a run."""
