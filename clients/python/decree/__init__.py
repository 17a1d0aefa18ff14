"""Write controllers for anything that has replicas: `decree.v1` is the contract, `Agent` keeps the rules of a session."""

from decree.agent import Agent
from decree.call import Failure

__all__ = ["Agent", "Failure"]
