"""Keeps the rules of a session with a Decree server, so that a controller is left with its own things: what there is, and how one of them is made and removed.

An `Agent` holds the view: the ReplicaSets and pods as they are. The controller tells it what it observes and provides a cluster, an object with

- `create(owner, name)`, which makes the pod of that name and returns it; the Agent fills in what is left empty: namespace, name, controller, version,
  the labels of the template and the time of creation. What is not empty must be right, and there must be a uid; else the create has failed with INVALID;
- `delete(pod, reason)`, which removes exactly that pod, and returns when it is gone;
- and, if it records these, `set_controller(pod, controller)`, where None releases the pod, and `write_status(replica_set, status)`.

They are called from several threads, and must not be async. A call that takes longer than `operation_timeout` is answered with TIMEOUT, and keeps its place
until it returns: its name is not asked for again, it counts as being created, and what it does goes into the view then.
An exception that is a `Failure` says that the call had no effect; after any other the effect counts as unknown, and the server asks again.

The Agent is meant for a process that is itself the cluster, one at a time: it has no Lease, and its epoch is 0. docs/protocol.md specifies the rules.
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
    """Holds the view and keeps the session. Its methods may be called at any time, from any thread."""

    def __init__(self, cluster, cluster_uid, *, cluster_name="", mode=sessions.MODE_ENFORCE, options=None,
                 operation_timeout=20.0, creates_per_second=20.0, create_burst=100):
        """`cluster_uid` names the cluster; no other cluster of the server has it.

        `operation_timeout` bounds each call of the cluster, in seconds. Creates are paced: `create_burst` begin at once, and then `creates_per_second`;
        None means no limit. A create that would wait for longer than `operation_timeout` is not started.
        """
        # Of the modes, unspecified is taken as ENFORCE.
        self.cluster, self.mode = cluster, mode or sessions.MODE_ENFORCE
        self.operation_timeout, self.pace = operation_timeout, Pace(creates_per_second, create_burst)
        self.hello = sessions.Hello(
            protocol_min=1, protocol_max=1, agent_instance=str(uuid.uuid4()),
            cluster_uid=cluster_uid, cluster_name=cluster_name, mode=mode, options=options)
        # It guards everything here and in the session. Objects of the view are replaced and never changed, because frames refer to them.
        self.lock = threading.Condition()
        self.pods, self.replica_sets = {}, {}
        # The uid of the ReplicaSet by namespace and name of the pod; uids of pods; those that were removed before the create that made them has returned.
        self.creating, self.deleting, self.removed = {}, set(), []
        # When each ReplicaSet was applied last, and what was removed.
        self.applied, self.gone_pods, self.gone_replica_sets = {}, Removals(), Removals()
        self.version, self.session, self.stopping = 0, None, False

    # What the controller observes.

    def apply_pod(self, pod):
        """Takes a pod as it is: a new one, or one that changed.

        The state that is applied last counts, so apply none that was read before a change that has been told since; `sync_pods` takes lists.
        A pod whose delete has been answered is gone, and is not applied.
        """
        with self.lock:
            if not self.gone_pods.is_answered(pod.uid):
                self.change(pod_applied=self.store_pod(copied(pod)))

    def remove_pod(self, uid):
        """Takes note that a pod is gone."""
        with self.lock:
            if uid in self.pods:
                self.drop_pod(uid)
            elif not self.gone_pods.is_answered(uid):
                self.gone_pods.add(uid, int(self.next_version()))

    def apply_replica_set(self, replica_set):
        """Takes a ReplicaSet as it is. Without a status it keeps the one that was written last. Its generation must grow with each change.

        As an API server of Kubernetes does, it refuses a ReplicaSet whose selector has no requirement, is not valid, or does not match the labels of the
        template: it raises ValueError, which names the field, and what was known of the ReplicaSet stays.
        """
        check_replica_set(replica_set)
        with self.lock:
            changed = copied(replica_set)
            known = self.replica_sets.get(changed.uid)
            if known and known.HasField("status") and not changed.HasField("status"):
                changed.status.CopyFrom(known.status)
            self.take_replica_set(changed)

    def remove_replica_set(self, uid):
        """Takes note that a ReplicaSet is gone."""
        with self.lock:
            if uid in self.replica_sets:
                self.drop_replica_set(uid)
            else:
                self.gone_replica_sets.add(uid, int(self.next_version()))

    def scale(self, uid, replicas):
        """Sets how many pods a ReplicaSet wants, and its next generation."""
        with self.lock:
            changed = copied(self.replica_sets[uid])
            changed.replicas, changed.generation = replicas, changed.generation + 1
            self.take_replica_set(changed)

    # Polling.

    def mark(self):
        """Returns the place that the view is at. Take it before you begin to list, and hand it to `sync_pods` or `sync_replica_sets` with the list."""
        with self.lock:
            return self.version

    def sync_pods(self, pods, since):
        """Takes a whole list of the pods that there are, which began after the mark was taken.

        What has changed since the mark stays as it is: a pod that was created or changed is kept, and a pod that was removed does not come back. Else each
        pod is taken as it is listed, and one that is not listed is removed. Raises ValueError for pods without a uid when the others are taken, and for a
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
        """Takes a whole list of the ReplicaSets that there are, by the rules of `sync_pods`.

        One that `apply_replica_set` would refuse stays as it was, and raises ValueError when the others are taken.
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
        """Takes a ReplicaSet of a list. The status that was written since the mark is newer than the list's."""
        known = self.replica_sets.get(changed.uid)
        if known:
            if known.HasField("status") and (not changed.HasField("status") or int(known.resource_version) > since):
                changed.status.CopyFrom(known.status)
            changed.resource_version = known.resource_version
        if changed != known:
            self.take_replica_set(changed)

    # The session.

    def run(self, channel, metadata=lambda: ()):
        """Keeps a session with the server until `stop`. `metadata` is called for each session, so that a token may be a new one."""
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
        """Has `run` answer what is in flight, close the stream and return."""
        with self.lock:
            self.stopping = True
            if self.session:
                self.session.drain()
            self.lock.notify_all()

    # What follows is called with the lock held.

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
        """Removes pods that were gone before their creates had returned: the outcome says that they were there, and then an event that they are not."""
        for uid in self.removed:
            if uid in self.pods:
                self.drop_pod(uid)
        self.removed.clear()

    def tell_deleted(self, kind, known):
        self.change(deleted=events.Deleted(kind=kind, object=ref(known), resource_version=self.next_version()))

    def change(self, **change):
        """Sends an event. Without a session nobody needs it: the next one begins with lists."""
        if self.session:
            self.session.send(events=events.Events(events=[events.Event(**change)]))

    def active(self, owner):
        """Counts the pods of a ReplicaSet that have neither ended nor are being deleted."""
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
    """Returns whether a listed pod says what is known of it already."""
    listed.resource_version = known.resource_version
    if not listed.HasField("created"):
        listed.created.CopyFrom(known.created)
    return listed == known
