"""Completion scripts for shells, made from the grammar itself, so that they know every verb and option."""
