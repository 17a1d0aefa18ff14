"""Write controllers for anything that has replicas: `decree_client.v1` is the contract, and `Agent` and `AsyncAgent` implement the agent's side of a session."""

from decree_client.agent import Agent
from decree_client.aio import AsyncAgent
from decree_client.cluster import AsyncCluster, Cluster, Owners, Statuses
from decree_client.failure import Failure, RefusedError

__all__ = ["Agent", "AsyncAgent", "AsyncCluster", "Cluster", "Failure", "Owners", "RefusedError", "Statuses"]
