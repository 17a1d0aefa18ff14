"""What a controller provides: the methods that create and remove its things."""

import inspect
from collections.abc import Callable
from typing import Protocol

from decree_client.v1 import object_pb2 as objects, report_pb2 as reports


class Cluster(Protocol):
    """Creates and removes the things that pods represent. The Agent calls its methods from several threads, and they must not be async.

    The outcome of a call that takes longer than `operation_timeout` is TIMEOUT. Until that call returns, its name is not requested again, its
    pod counts as being created, and its effect enters the view when it returns. A `Failure` says that the call had no effect. After any
    other exception the effect is unknown, and the server retries. Objects that a call receives are copies, for it to keep or change.
    """

    def create(self, owner: objects.ReplicaSet, name: str) -> objects.Pod:
        """Creates the pod with this name and returns it.

        The Agent fills in empty fields: namespace, name, controller, version, the labels of the template and the creation time. Other
        fields must be correct, and the UID is required; otherwise the create fails with INVALID.
        """

    def delete(self, pod: objects.Pod, reason: reports.Reason) -> objects.Pod | None:
        """Removes exactly this pod. Returns None when the pod is gone.

        If the removal takes long, begin it and return the pod, which is then being deleted. Call `remove_pod` when it is gone.
        """


class Owners(Protocol):
    """Is implemented by a cluster that records the controller of a pod. Without it, adoptions and releases only change the view."""

    def set_controller(self, pod: objects.Pod, controller: objects.OwnerReference | None) -> None:
        """Records the controller of a pod; None releases the pod."""


class Statuses(Protocol):
    """Is implemented by a cluster that records the status of a ReplicaSet. Without it, only the view contains the status."""

    def write_status(self, replica_set: objects.ReplicaSet, status: objects.ReplicaSetStatus) -> None:
        """Records the status of a ReplicaSet."""


class AsyncCluster(Protocol):
    """A `Cluster` for an `AsyncAgent`, which calls its methods in the event loop. A call that takes longer than `operation_timeout` is cancelled.

    `set_controller` and `write_status` are optional, and async too.
    """

    async def create(self, owner: objects.ReplicaSet, name: str) -> objects.Pod:
        """Creates the pod with this name and returns it, as `Cluster.create`."""

    async def delete(self, pod: objects.Pod, reason: reports.Reason) -> objects.Pod | None:
        """Removes exactly this pod, as `Cluster.delete`."""


REQUIRED, OPTIONAL = ("create", "delete"), ("set_controller", "write_status")


def check_cluster(cluster: object, *, is_async: bool) -> None:
    """Raises TypeError for a cluster with a method that is missing or of the wrong kind: no operation could succeed."""
    kind = type(cluster).__name__
    for name in REQUIRED + OPTIONAL:
        method = getattr(cluster, name, None)
        if method is None and name in OPTIONAL:
            continue
        if not callable(method):
            raise TypeError(f"{kind}.{name}: there is no such method")
        check_function(method, f"{kind}.{name}", is_async=is_async)


def check_function(function: Callable[..., object], name: str, *, is_async: bool) -> None:
    """Raises TypeError for a function whose call would do nothing."""
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError(f"{name}: it is a generator function, whose call does nothing")
    if inspect.iscoroutinefunction(function) and not is_async:
        raise TypeError(f"{name}: it is async; use an AsyncAgent")


def is_unstarted(returned: object) -> bool:
    """Returns whether a function is async or a generator, so that its call has done nothing yet."""
    return inspect.isawaitable(returned) or inspect.isgenerator(returned) or inspect.isasyncgen(returned)
