"""Fixtures for tests against the official packages."""

from tests.peers.azurite.server import azurite
from tests.peers.npm import node
from tests.peers.pypi import actions_toolkit

__all__ = ["actions_toolkit", "azurite", "node"]
