"""Keeps the rules of a session with a Decree server, so that a controller is left with its own things: what there is, and how one of them is made and removed.

An `Agent` holds the view: the ReplicaSets and pods as they are. The controller tells it what it observes and provides a cluster, an object with

- `create(owner, name)`, which makes the pod of that name and returns it; the Agent fills in what is left empty: namespace, name, controller, version,
  the labels of the template and the time of creation;
- `delete(pod, reason)`, which removes exactly that pod, and returns when it is gone;
- and, if it records these, `set_controller(pod, controller)`, where None releases the pod, and `write_status(replica_set, status)`.

They are called from several threads. A new session begins only when all calls have returned, so they must return in time.
An exception that is a `Failure` says that the call had no effect; after any other the effect counts as unknown, and the server asks again.

The Agent is meant for a process that is itself the cluster, one at a time: it has no Lease, and its epoch is 0. docs/protocol.md specifies the rules.
"""

import logging
import random
import threading
import time
import uuid

import grpc

from decree.session import Session, retry_after
from decree.v1 import event_pb2 as events, object_pb2 as objects
from decree.v1 import batch_pb2 as batches, session_pb2 as sessions
from decree.v1 import decision_service_pb2_grpc as services

FIRST_WAIT, LAST_WAIT, LONGEST_WAIT = 0.1, 2.0, 300.0
ENDED = (objects.POD_PHASE_SUCCEEDED, objects.POD_PHASE_FAILED)
logger = logging.getLogger("decree")


class Failure(Exception):
    """Says that an operation had no effect, by a class of `decree.v1.batch_pb2.FailureClass` and in words for people."""

    def __init__(self, kind, message):
        super().__init__(message)
        self.kind, self.message = kind, message


class Agent:
    """Holds the view and keeps the session. Its methods may be called at any time, from any thread."""

    def __init__(self, cluster, cluster_uid, *, cluster_name="", mode=sessions.MODE_ENFORCE, options=None):
        """`cluster_uid` names the cluster; no other cluster of the server has it."""
        self.cluster, self.mode = cluster, mode
        self.hello = sessions.Hello(
            protocol_min=1, protocol_max=1, agent_instance=str(uuid.uuid4()),
            cluster_uid=cluster_uid, cluster_name=cluster_name, mode=mode, options=options)
        # It guards everything here and in the session. Objects of the view are replaced and never changed, because frames refer to them.
        self.lock = threading.Condition()
        self.pods, self.replica_sets = {}, {}
        self.creating, self.deleting, self.removed = [], set(), set()
        self.version, self.session, self.stopping = 0, None, False

    # What the controller observes.

    def apply_pod(self, pod):
        """Takes a pod as it is: a new one, or one that changed."""
        with self.lock:
            self.change(pod_applied=self.store_pod(copied(pod)))

    def remove_pod(self, uid):
        """Takes note that a pod is gone."""
        with self.lock:
            if uid in self.pods:
                self.drop_pod(uid)
            elif self.creating:
                self.removed.add(uid)

    def apply_replica_set(self, replica_set):
        """Takes a ReplicaSet as it is. Without a status it keeps the one that was written last. Its generation must grow with each change."""
        with self.lock:
            changed = copied(replica_set)
            known = self.replica_sets.get(changed.uid)
            if known and not changed.HasField("status"):
                changed.status.CopyFrom(known.status)
            self.store_replica_set(changed)
            self.change(replica_set_applied=changed)

    def remove_replica_set(self, uid):
        """Takes note that a ReplicaSet is gone."""
        with self.lock:
            known = self.replica_sets.pop(uid, None)
            if known:
                self.tell_deleted(objects.KIND_REPLICA_SET, known)

    def scale(self, uid, replicas):
        """Sets how many pods a ReplicaSet wants, and its next generation."""
        with self.lock:
            changed = copied(self.replica_sets[uid])
            changed.replicas, changed.generation = replicas, changed.generation + 1
            self.store_replica_set(changed)
            self.change(replica_set_applied=changed)

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
        return pod

    def store_replica_set(self, replica_set):
        replica_set.resource_version = self.next_version()
        self.replica_sets[replica_set.uid] = replica_set

    def drop_pod(self, uid):
        self.tell_deleted(objects.KIND_POD, self.pods.pop(uid))

    def drop_removed(self):
        """Removes pods that were gone before their creates had returned: the outcome says that they were there, and then an event that they are not."""
        for uid in self.removed & self.pods.keys():
            self.removed.remove(uid)
            self.drop_pod(uid)
        if not self.creating:
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

    def failed(self, error):
        if isinstance(error, Failure):
            return {"failed": batches.Failed(**{"class": error.kind, "message": error.message})}
        logger.warning("the effect of an operation is unknown", exc_info=error)
        return {"failed": batches.Failed(**{"class": batches.FAILURE_CLASS_TIMEOUT, "message": str(error)})}


def ref(known):
    return objects.ObjectRef(namespace=known.namespace, name=known.name, uid=known.uid)


def copied(message):
    copy = type(message)()
    copy.CopyFrom(message)
    return copy
