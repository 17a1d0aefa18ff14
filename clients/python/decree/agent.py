"""Implements the agent's side of a session with a Decree server. A controller only reports its objects, and creates and removes pods.

An `Agent` holds the view: the current ReplicaSets and pods. The controller reports changes and provides a cluster, an object with

- `create(owner, name)`, which creates the pod with this name and returns it. The Agent fills in empty fields: namespace, name, controller, version,
  the labels of the template and the creation time. Other fields must be correct, and the UID is required; otherwise the create fails with INVALID;
- `delete(pod, reason)`, which removes exactly this pod, and returns when the pod is gone;
- and, if the cluster records them, `set_controller(pod, controller)`, where None releases the pod, and `write_status(replica_set, status)`.

The Agent calls these methods from several threads, and they must not be async. The outcome of a call that takes longer than `operation_timeout` is TIMEOUT.
Until that call returns, its name is not requested again, its pod counts as being created, and its effect enters the view when it returns.
A `Failure` says that the call had no effect. After any other exception the effect is unknown, and the server retries.

The Agent is for a process that is itself the cluster and runs as a single instance: the Agent has no Lease, and its epoch is 0.
docs/protocol.md specifies the rules.
"""

import logging
import random
import threading
import time
import uuid

import grpc

from decree.check import check_replica_set
from decree.pace import Pace
from decree.removals import Removals
from decree.session import Session, retry_after
from decree.v1 import event_pb2 as events, object_pb2 as objects
from decree.v1 import session_pb2 as sessions
from decree.v1 import decision_service_pb2_grpc as services

FIRST_WAIT, LAST_WAIT, LONGEST_WAIT = 0.1, 2.0, 300.0
ENDED = (objects.POD_PHASE_SUCCEEDED, objects.POD_PHASE_FAILED)
logger = logging.getLogger("decree")


class Agent:
    """Holds the view and keeps the session. Its methods are thread-safe."""

    def __init__(self, cluster, cluster_uid, *, cluster_name="", mode=sessions.MODE_ENFORCE, options=None,
                 operation_timeout=20.0, creates_per_second=20.0, create_burst=100):
        """`cluster_uid` names the cluster, and must be unique on the server.

        `operation_timeout` limits each call of the cluster, in seconds. `create_burst` creates may begin at once, and then `creates_per_second`;
        None means no limit. A create that would wait for longer than `operation_timeout` does not start.
        """
        # An unspecified mode means ENFORCE.
        self.cluster, self.mode = cluster, mode or sessions.MODE_ENFORCE
        self.operation_timeout, self.pace = operation_timeout, Pace(creates_per_second, create_burst)
        self.hello = sessions.Hello(
            protocol_min=1, protocol_max=1, agent_instance=str(uuid.uuid4()),
            cluster_uid=cluster_uid, cluster_name=cluster_name, mode=mode, options=options)
        # The lock guards all fields here and in the session. Objects of the view are replaced and never changed, because frames refer to them.
        self.lock = threading.Condition()
        self.pods, self.replica_sets = {}, {}
        # The UID of the ReplicaSet by namespace and name of the pod; UIDs of pods; UIDs that were removed before their create returned.
        self.creating, self.deleting, self.removed = {}, set(), []
        # When each ReplicaSet was applied last, and the removals.
        self.applied, self.gone_pods, self.gone_replica_sets = {}, Removals(), Removals()
        self.version, self.session, self.stopping = 0, None, False

    # Changes that the controller observes.

    def apply_pod(self, pod):
        """Adds or updates a pod.

        The last applied state counts, so never apply a state that was read before a change you already reported; for lists, use `sync_pods`.
        The Agent ignores a pod whose delete has succeeded.
        """
        with self.lock:
            if not self.gone_pods.is_answered(pod.uid):
                self.change(pod_applied=self.store_pod(copied(pod)))

    def remove_pod(self, uid):
        """Removes a pod from the view."""
        with self.lock:
            if uid in self.pods:
                self.drop_pod(uid)
            elif not self.gone_pods.is_answered(uid):
                self.gone_pods.add(uid, int(self.next_version()))

    def apply_replica_set(self, replica_set):
        """Adds or updates a ReplicaSet. Without a status, the last written status stays. The generation must grow with each change.

        Like the Kubernetes API server, it refuses a ReplicaSet whose selector is empty, is invalid, or does not match the labels of the
        template: it raises ValueError, which names the field, and the view keeps the earlier ReplicaSet.
        """
        check_replica_set(replica_set)
        with self.lock:
            changed = copied(replica_set)
            known = self.replica_sets.get(changed.uid)
            if known and known.HasField("status") and not changed.HasField("status"):
                changed.status.CopyFrom(known.status)
            self.take_replica_set(changed)

    def remove_replica_set(self, uid):
        """Removes a ReplicaSet from the view."""
        with self.lock:
            if uid in self.replica_sets:
                self.drop_replica_set(uid)
            else:
                self.gone_replica_sets.add(uid, int(self.next_version()))

    def scale(self, uid, replicas):
        """Sets the desired number of pods of a ReplicaSet, and increments its generation."""
        with self.lock:
            changed = copied(self.replica_sets[uid])
            changed.replicas, changed.generation = replicas, changed.generation + 1
            self.take_replica_set(changed)

    # Polling.

    def mark(self):
        """Returns the current position. Take it before you begin to list, and pass it to `sync_pods` or `sync_replica_sets` with the list."""
        with self.lock:
            return self.version

    def sync_pods(self, pods, since):
        """Replaces the pods of the view with a complete list that began after the mark.

        Changes since the mark win: a pod created or changed since then stays, and a pod removed since then does not come back. Otherwise
        this stores each listed pod and removes all others. Raises ValueError for pods without a UID, after storing the others, and for a
        mark that is too old, which changes nothing.
        """
        with self.lock:
            self.gone_pods.check(since)
            listed = {pod.uid: copied(pod) for pod in pods}
            faults = [f"pod {pod.namespace}/{pod.name}: uid: it is empty" for pod in pods if not pod.uid]
            listed.pop("", None)
            for uid, pod in listed.items():
                known = self.pods.get(uid)
                if self.gone_pods.version(uid) > since or known and int(known.resource_version) > since:
                    continue
                if not known or not is_same(pod, known):
                    self.change(pod_applied=self.store_pod(pod))
            for uid, known in list(self.pods.items()):
                if uid not in listed and int(known.resource_version) <= since:
                    self.drop_pod(uid)
        if faults:
            raise ValueError("; ".join(faults))

    def sync_replica_sets(self, replica_sets, since):
        """Replaces the ReplicaSets of the view with a complete list, by the rules of `sync_pods`.

        If `apply_replica_set` would refuse one, its earlier state stays, and this raises ValueError after storing the others.
        """
        faults = []
        with self.lock:
            self.gone_replica_sets.check(since)
            for one in replica_sets:
                try:
                    check_replica_set(one)
                except ValueError as fault:
                    faults.append(str(fault))
                    continue
                if self.applied.get(one.uid, 0) <= since and self.gone_replica_sets.version(one.uid) <= since:
                    self.sync_replica_set(copied(one), since)
            listed = {one.uid for one in replica_sets}
            for uid in list(self.replica_sets):
                if uid not in listed and self.applied[uid] <= since:
                    self.drop_replica_set(uid)
        if faults:
            raise ValueError("; ".join(faults))

    def sync_replica_set(self, changed, since):
        """Stores a listed ReplicaSet. A status that was written since the mark is newer than the listed one."""
        known = self.replica_sets.get(changed.uid)
        if known:
            if known.HasField("status") and (not changed.HasField("status") or int(known.resource_version) > since):
                changed.status.CopyFrom(known.status)
            changed.resource_version = known.resource_version
        if changed != known:
            self.take_replica_set(changed)

    # The session.

    def run(self, channel, metadata=lambda: ()):
        """Keeps a session with the server until `stop`. It calls `metadata` for each session, so that the token can change."""
        stub, wait = services.DecisionServiceStub(channel), FIRST_WAIT
        while not self.stopping:
            began = time.monotonic()
            after, why = 0.0, "closed"
            session = Session(self)
            try:
                session.run(stub, metadata())
            except grpc.RpcError as error:
                after, why = retry_after(error), f"{error.code().name}: {error.details()}"
            finally:
                session.wait_for_calls()
            logger.info("session ended: %s", session.cause or why)
            if time.monotonic() - began > wait:
                wait = FIRST_WAIT
            after = max(after, session.after)
            with self.lock:
                self.lock.wait_for(lambda: self.stopping, max(wait * random.uniform(0.5, 1), min(after, LONGEST_WAIT)))
            wait = min(2 * wait, LAST_WAIT)

    def stop(self):
        """Makes `run` send the outcomes in flight, close the stream and return."""
        with self.lock:
            self.stopping = True
            if self.session:
                self.session.drain()
            self.lock.notify_all()

    # The methods below run with the lock held.

    def next_version(self):
        self.version += 1
        return str(self.version)

    def store_pod(self, pod):
        pod.resource_version = self.next_version()
        if not pod.HasField("created"):
            pod.created.FromSeconds(int(time.time()))
        self.pods[pod.uid] = pod
        self.gone_pods.discard(pod.uid)
        return pod

    def store_replica_set(self, replica_set):
        replica_set.resource_version = self.next_version()
        self.replica_sets[replica_set.uid] = replica_set

    def take_replica_set(self, replica_set):
        self.store_replica_set(replica_set)
        self.applied[replica_set.uid] = self.version
        self.gone_replica_sets.discard(replica_set.uid)
        self.change(replica_set_applied=replica_set)

    def drop_pod(self, uid):
        self.tell_deleted(objects.KIND_POD, self.pods.pop(uid))
        self.gone_pods.add(uid, self.version)

    def drop_replica_set(self, uid):
        self.applied.pop(uid)
        self.tell_deleted(objects.KIND_REPLICA_SET, self.replica_sets.pop(uid))
        self.gone_replica_sets.add(uid, self.version)

    def drop_removed(self):
        """Removes pods that were gone before their creates returned. The outcome shows the pod, and an event then removes it."""
        for uid in self.removed:
            if uid in self.pods:
                self.drop_pod(uid)
        self.removed.clear()

    def tell_deleted(self, kind, known):
        self.change(deleted=events.Deleted(kind=kind, object=ref(known), resource_version=self.next_version()))

    def change(self, **change):
        """Sends an event. Without a session it sends nothing, because the next session begins with lists."""
        if self.session:
            self.session.send(events=events.Events(events=[events.Event(**change)]))

    def active(self, owner):
        """Counts the active pods of a ReplicaSet."""
        return sum(pod.controller.uid == owner and self.is_active(pod) for pod in self.pods.values())

    def is_active(self, pod):
        return not pod.HasField("deleted") and pod.phase not in ENDED and pod.uid not in self.deleting


def ref(known):
    return objects.ObjectRef(namespace=known.namespace, name=known.name, uid=known.uid)


def copied(message):
    copy = type(message)()
    copy.CopyFrom(message)
    return copy


def is_same(listed, known):
    """Returns whether a listed pod equals the known one, apart from the version."""
    listed.resource_version = known.resource_version
    if not listed.HasField("created"):
        listed.created.CopyFrom(known.created)
    return listed == known
