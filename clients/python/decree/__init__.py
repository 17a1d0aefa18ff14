"""Write controllers for anything that has replicas: `decree.v1` is the contract, and `Agent` implements the agent's side of a session."""

from decree.agent import Agent
from decree.call import Failure

__all__ = ["Agent", "Failure"]
