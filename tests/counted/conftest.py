"""The fixtures of the action's tests, for counting what it asks of the service."""

from tests.action.conftest import hurried, service, tools, workflow

__all__ = ["hurried", "service", "tools", "workflow"]
