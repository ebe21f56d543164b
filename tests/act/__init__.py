"""The action under the real act, offline."""
