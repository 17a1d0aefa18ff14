"""The methods that `Agent` and `AsyncAgent` share: a controller reports its objects by them."""

from collections.abc import Callable, Iterable

from decree_client.cluster import check_cluster, check_function
from decree_client.engine import Engine
from decree_client.pace import Pace
from decree_client.v1 import object_pb2 as objects, session_pb2 as sessions


class BaseAgent:
    """Holds the view: the current ReplicaSets and pods. Its methods are thread-safe, and none of them waits for a call of the cluster."""

    _is_async = False

    def __init__(self, cluster: object, cluster_uid: str, *, cluster_name: str = "", shard: str = "", epoch: int = 0,
                 mode: "sessions.Mode" = sessions.MODE_ENFORCE, options: sessions.Options | None = None,
                 platform: "sessions.Platform" = sessions.PLATFORM_OTHER, operation_timeout: float = 20.0,
                 creates_per_second: float | None = 20.0, create_burst: int = 100, calls_max: int = 100, settle: float = 60.0,
                 on_synced: Callable[[], object] | None = None) -> None:
        """`cluster_uid` names the cluster, and must be unique on the server. `shard` names the part of it whose objects the agent reports.
        `epoch` is the number of elections before this process became the leader: a session with a lower one is refused. 0 means no elections.
        `platform` is what runs the pods: for PLATFORM_KUBERNETES, `decree explain` and the console name commands of kubectl.

        `operation_timeout` limits each call of the cluster, in seconds. `create_burst` creates may begin at once, and then `creates_per_second`;
        None means no limit. A create that would wait for longer than `operation_timeout` does not start.
        `calls_max` limits the concurrent calls; calls that take longer than `operation_timeout` do not count.
        `settle` is how many seconds a list may lag behind `create` and `delete`.
        `on_synced` is called in each session when the server has welcomed the agent, and the lists have been sent: from now on the server decides.
        It runs in a thread of its own, or in the event loop, where it may be async.

        Raises TypeError for a cluster with a method that is missing or of the wrong kind. Raises ValueError for MODE_ADVISE: an agent of this
        package writes no deletion costs.
        """
        if mode == sessions.MODE_ADVISE:
            raise ValueError("mode: an agent of this package does not advise")
        check_cluster(cluster, is_async=self._is_async)
        if on_synced:
            check_function(on_synced, "on_synced", is_async=self._is_async)
        hello = sessions.Hello(cluster_uid=cluster_uid, cluster_name=cluster_name, shard=shard, epoch=epoch, mode=mode, options=options,
                               platform=platform or sessions.PLATFORM_OTHER)
        pace = Pace(creates_per_second, create_burst)
        self._engine = Engine(cluster, hello, operation_timeout=operation_timeout, pace=pace, settle=settle, calls_max=calls_max, on_synced=on_synced)
        self._lock, self._view = self._engine.lock, self._engine.view

    def apply_pod(self, pod: objects.Pod) -> None:
        """Adds or updates a pod.

        The last applied state counts, so never apply a state that was read before a change you already reported; for lists, use `sync_pods`.
        The Agent ignores a pod whose delete has succeeded. It fills in empty labels and an empty controller of pods that it has created, and an
        empty kind and name of each controller. It raises ValueError for a pod that its ReplicaSet would not count, naming the field: the server
        would create another one. Without labels and controller, such a pod is one whose name is that of a ReplicaSet and five letters.
        """
        with self._lock:
            self._view.apply_pod(pod)

    def remove_pod(self, uid: str) -> None:
        """Removes a pod from the view, at once."""
        with self._lock:
            self._view.remove_pod(uid)

    def apply_replica_set(self, replica_set: objects.ReplicaSet) -> None:
        """Adds or updates a ReplicaSet. Without a status, the last written status stays. The generation must grow with each change.

        Like the Kubernetes API server, it refuses a ReplicaSet whose selector is empty, is invalid, or does not match the labels of the
        template: it raises ValueError, which names the field, and the view keeps the earlier ReplicaSet. It also raises ValueError for a new
        ReplicaSet if the view has pods of it that it would not count, as `apply_pod` does.
        """
        with self._lock:
            self._view.apply_replica_set(replica_set)

    def remove_replica_set(self, uid: str) -> None:
        """Removes a ReplicaSet from the view."""
        with self._lock:
            self._view.remove_replica_set(uid)

    def scale(self, uid: str, replicas: int) -> None:
        """Sets the desired number of pods of a ReplicaSet, and increments its generation. Raises KeyError if the view has no such ReplicaSet."""
        with self._lock:
            self._view.scale(uid, replicas)

    def synced(self) -> None:
        """Says that `apply_pod` has been called for all pods that exist. Until then, or until `sync_pods` succeeds, the server decides nothing."""
        with self._lock:
            self._engine.synced()

    def mark(self) -> int:
        """Returns the current position. Take it before you begin to list, and pass it to `sync_pods` or `sync_replica_sets` with the list."""
        with self._lock:
            return self._view.version

    def sync_pods(self, pods: Iterable[objects.Pod], since: int) -> None:
        """Replaces the pods of the view with a complete list that began after the mark.

        Changes since the mark win: a pod created or changed since then stays, and a pod removed since then does not come back. Otherwise
        this stores each listed pod, as `apply_pod` does, and removes all others. A list may lag: for `settle` seconds, a pod that `create`
        returned and no list has shown stays, and a pod whose delete has succeeded does not come back.

        Raises ValueError for pods without a UID and for pods that `apply_pod` refuses, after storing the others, and for a mark that is too
        old, which changes nothing. The first list without an error lets the server decide.
        """
        pods = list(pods)  # The code of the controller may wait, raise, or call the Agent: not with the lock held.
        with self._lock:
            faults = self._view.sync_pods(pods, since)
            if faults:
                raise ValueError("; ".join(faults))
            self._engine.synced()

    def sync_replica_sets(self, replica_sets: Iterable[objects.ReplicaSet], since: int) -> None:
        """Replaces the ReplicaSets of the view with a complete list, by the rules of `sync_pods`.

        If `apply_replica_set` would refuse one, its earlier state stays, and this raises ValueError after storing the others.
        """
        replica_sets = list(replica_sets)
        with self._lock:
            faults = self._view.sync_replica_sets(replica_sets, since)
            if faults:
                raise ValueError("; ".join(faults))

    def pods(self) -> list[objects.Pod]:
        """Returns the pods of the view, sorted by name. Do not change them."""
        with self._lock:
            return sorted(self._view.pods.values(), key=lambda pod: (pod.namespace, pod.name))

    def stop(self) -> None:
        """Makes `run` send the outcomes in flight, close the stream and return."""
        with self._lock:
            self._engine.stop()
