"""The runner's services on this machine: enough of them, and faulty enough on demand, to test a client against."""

from tests.actions_service.faults import Fault, FaultPlan
from tests.actions_service.server import ActionsService
from tests.actions_service.tokens import make_token

__all__ = ["ActionsService", "Fault", "FaultPlan", "make_token"]
