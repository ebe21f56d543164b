"""``python -m checkpoint_action`` is the console script."""

from checkpoint_action.cli import entry

if __name__ == "__main__":
    entry()
