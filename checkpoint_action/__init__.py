"""Long jobs made resumable: named steps, each finished one kept, the next run does only what is left."""

__version__ = "1.0.0.dev0"
