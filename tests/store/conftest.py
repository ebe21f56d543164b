"""Fixtures for the tests of stores."""

from tests.peers.azurite.server import azurite
from tests.store.places import moto, rclone

__all__ = ["azurite", "moto", "rclone"]
