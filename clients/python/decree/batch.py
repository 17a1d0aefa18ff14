"""Executes one batch: checks each operation immediately before it starts, and reports exactly one outcome for each."""

import concurrent.futures
import logging
import re
import threading
import time

from decree.call import Call, Failure, failed as failed_by
from decree.check import made_fault
from decree.v1 import batch_pb2 as batches, event_pb2 as events, object_pb2 as objects, session_pb2 as sessions

# The maximum number of concurrent operations of one round.
WORKERS = 32
logger = logging.getLogger("decree")


class Work:
    """One batch in execution. Its methods return outcomes as keyword arguments of `Outcome`."""

    def __init__(self, session, batch):
        self.session, self.batch, self.agent = session, batch, session.agent
        self.action = batch.WhichOneof("action")

    def run(self):
        try:
            match self.action:
                case "create":
                    self.slow_start(self.batch.create)
                case "delete":
                    self.round(0, [(self.delete, victim) for victim in self.batch.delete.victims])
                case "claim":
                    claim = self.batch.claim
                    self.round(0, [(self.adopt, one) for one in claim.adopts] + [(self.release, one) for one in claim.releases])
                case "write_status":
                    self.round(0, [(self.write_status, self.batch.write_status.status)])
        finally:
            self.session.finished(threading.current_thread())

    def slow_start(self, create):
        """Creates pods in rounds that double in size, and stops after the first round with a failure."""
        names, begin, size, failed = list(create.names), 0, max(create.slow_start_initial, 1), False
        while begin < len(names) and not failed:
            failed = self.round(begin, [(self.create, name) for name in names[begin:begin + size]])
            begin, size = begin + size, 2 * size
        for at in range(begin, len(names)):
            with self.agent.lock:
                self.report(at, not_started(batches.NOT_STARTED_CAUSE_SLOW_START, "an earlier create failed"))

    def round(self, begin, operations):
        """Executes operations concurrently, and returns whether one failed."""
        with concurrent.futures.ThreadPoolExecutor(max_workers=WORKERS) as pool:
            return any(list(pool.map(self.operate, range(begin, begin + len(operations)), operations)))

    def operate(self, at, operation):
        """Executes one operation. Its method makes the call without the lock, and returns a function that makes the outcome with the lock."""
        method, target = operation
        finish = method(target)
        with self.agent.lock:
            outcome = finish()
            self.report(at, outcome)
            self.agent.drop_removed()
        return "failed" in outcome

    def report(self, at, outcome):
        """Sends the outcome of one operation, unless the session has ended."""
        if self.agent.session is self.session:
            one = batches.Outcome(batch_id=self.batch.id, operation=at, **outcome)
            self.session.send(outcomes=batches.Outcomes(outcomes=[one]))

    def refused(self):
        """Returns the reason why no operation of the batch may start, or None."""
        agent, guard, name = self.agent, self.batch.guard, self.batch.replica_set
        owner = agent.replica_sets.get(name.uid)
        if not self.session.id or guard.session_id != self.session.id or guard.epoch:
            return guarded("session: the batch is of another session or epoch")
        if agent.mode != sessions.MODE_ENFORCE or self.session.draining or agent.session is not self.session:
            return not_started(batches.NOT_STARTED_CAUSE_NOT_ENFORCING, "the agent only watches, or drains")
        if not owner or (owner.namespace, owner.name) != (name.namespace, name.name):
            return guarded("reference: there is no such ReplicaSet")
        if owner.HasField("deleted") and self.action != "write_status":
            return guarded("reference: the ReplicaSet is being deleted")
        return None

    @property
    def owner(self):
        return self.agent.replica_sets[self.batch.replica_set.uid]

    def wanted(self):
        return self.owner.replicas if self.owner.HasField("replicas") else 1

    def create(self, name):
        refused = self.wait_for_pace(name)
        if refused:
            return lambda: refused
        with self.agent.lock:
            refused = self.refused() or self.refused_create(name)
            if refused:
                return lambda: refused
            owner, began = self.owner, self.agent.version
            self.agent.creating[owner.namespace, name] = owner.uid
        target = objects.ObjectRef(namespace=owner.namespace, name=name)
        call = Call("create", self.agent.cluster.create, owner, name)

        def finish():
            self.agent.creating.pop((owner.namespace, name))
            return call.outcome(lambda made: self.created(owner, name, began, made))

        return self.answered(call, target, finish)

    def wait_for_pace(self, name):
        """Waits until the create may begin, or the session drains or ends. Returns the reason why the create may not start, or None."""
        with self.agent.lock:
            refused = self.refused() or self.refused_create(name)
            if refused:
                return refused
            wait, why = self.agent.pace.reserve(time.monotonic(), self.agent.operation_timeout)
        if why:
            return guarded(why)
        if wait:
            self.session.over.wait(wait)
        return None

    def answered(self, call, target, finish):
        """Makes a call, and returns a function that makes its outcome. After the timeout the outcome is TIMEOUT, and `finish` runs when the call returns."""
        try:
            call.start()
            call.join(self.agent.operation_timeout)
        except RuntimeError as error:  # The process cannot start more threads.
            call.error = Failure(batches.FAILURE_CLASS_UNAVAILABLE, str(error))
        if not call.is_alive():
            call.tell(target)
            return finish
        threading.Thread(target=self.late, args=[call, target, finish], daemon=True).start()
        text = f"it has not returned within {self.agent.operation_timeout:g} s"
        logger.warning("%s of %s/%s failed: %s", call.what, target.namespace, target.name, text)
        return lambda: failed(batches.FAILURE_CLASS_TIMEOUT, text)

    def late(self, call, target, finish):
        """Reports the changes of a call whose outcome was already sent."""
        call.join()
        with self.agent.lock:
            done = finish().get("done", batches.Done())
            match done.WhichOneof("object"):
                case "pod":
                    self.agent.change(pod_applied=done.pod)
                case "replica_set":
                    self.agent.change(replica_set_applied=done.replica_set)
                case "gone":
                    gone = events.Deleted(kind=objects.KIND_POD, object=target, resource_version=done.resource_version)
                    self.agent.change(deleted=gone)
            self.agent.drop_removed()

    def refused_create(self, name):
        owner, agent = self.owner, self.agent
        if not is_name_of(owner, name):
            return guarded("name: it is not the ReplicaSet's and five letters")
        for pod in agent.pods.values():
            if (pod.namespace, pod.name) == (owner.namespace, name):
                if pod.controller.uid == owner.uid and not pod.HasField("deleted"):
                    return done_pod(pod, already_existed=True)
                return failed(batches.FAILURE_CLASS_NAME_TAKEN, "the name is that of another pod")
        if (owner.namespace, name) in agent.creating:
            return guarded("name: an earlier create of it has not returned")
        creating = list(agent.creating.values()).count(owner.uid)
        if agent.active(owner.uid) + creating >= self.wanted():
            return guarded("surplus: there are as many pods as desired")
        return None

    def created(self, owner, name, began, made):
        """Adds the created pod to the view, if the pod is valid."""
        agent = self.agent
        fault = made_fault(agent, owner, name, made)
        if fault:
            logger.warning("create of %s/%s returned what cannot count: %s", owner.namespace, name, fault)
            return failed(batches.FAILURE_CLASS_INVALID, fault)
        if made.uid in agent.pods:
            made = agent.pods[made.uid]  # A newer state of the pod was applied while the create ran.
        elif agent.gone_pods.version(made.uid) > began:
            agent.removed.append(made.uid)
        pod = objects.Pod()
        pod.CopyFrom(made)
        pod.namespace, pod.name = owner.namespace, name
        pod.controller.CopyFrom(controller_of(owner))
        if not pod.labels:
            pod.labels.update(owner.template_labels)
        return done_pod(agent.store_pod(pod))

    def delete(self, victim):
        with self.agent.lock:
            pod = self.agent.pods.get(victim.pod.uid)
            refused = self.refused() or self.refused_delete(pod, victim)
            if refused:
                return lambda: refused
            self.agent.deleting.add(pod.uid)
        call = Call("delete", self.agent.cluster.delete, pod, victim.reason)

        def gone(_returned):
            self.agent.pods.pop(pod.uid, None)
            version = self.agent.next_version()
            self.agent.gone_pods.add(pod.uid, self.agent.version, answered=True)
            return {"done": batches.Done(uid=pod.uid, resource_version=version, gone=True)}

        def finish():
            self.agent.deleting.discard(pod.uid)
            return call.outcome(gone)

        return self.answered(call, victim.pod, finish)

    def refused_delete(self, pod, victim):
        if not is_same(pod, victim.pod):
            return failed(batches.FAILURE_CLASS_NOT_FOUND, "there is no such pod")
        if victim.resource_version not in ("", pod.resource_version):
            return failed(batches.FAILURE_CLASS_PRECONDITION, "the pod has another version")
        if pod.controller.uid != self.owner.uid:
            return guarded("ownership: the ReplicaSet does not control the pod")
        if not self.agent.is_active(pod):
            return guarded("inactive: the pod has ended or is being deleted")
        if self.agent.active(self.owner.uid) <= self.wanted():
            return guarded("shortage: no more pods are active than desired")
        return None

    def adopt(self, target):
        def check(pod):
            if pod.controller.uid not in ("", self.owner.uid):
                return guarded("ownership: the pod has another controller")
            return None

        return self.claim(target, check, lambda: controller_of(self.owner))

    def release(self, target):
        def check(pod):
            return done_pod(pod) if pod.controller.uid != self.owner.uid else None

        return self.claim(target, check, lambda: None)

    def claim(self, target, check, controller):
        with self.agent.lock:
            pod = self.agent.pods.get(target.uid)
            refused = self.refused()
            if not refused and not is_same(pod, target):
                refused = failed(batches.FAILURE_CLASS_PRECONDITION, "there is no such pod")
            refused = refused or check(pod)
            if refused:
                return lambda: refused
            controller = controller()
        call = Call("set_controller", getattr(self.agent.cluster, "set_controller", ignore), pod, controller)

        def claimed(_returned):
            known = self.agent.pods.get(pod.uid)
            if not known:
                return failed(batches.FAILURE_CLASS_NOT_FOUND, "the pod is gone")
            changed = objects.Pod()
            changed.CopyFrom(known)
            changed.ClearField("controller")
            if controller:
                changed.controller.CopyFrom(controller)
            return done_pod(self.agent.store_pod(changed))

        return self.answered(call, target, lambda: call.outcome(claimed))

    def write_status(self, status):
        with self.agent.lock:
            refused = self.refused()
            if refused:
                return lambda: refused
            owner = self.owner
        call = Call("write_status", getattr(self.agent.cluster, "write_status", ignore), owner, status)

        def written(_returned):
            known = self.agent.replica_sets.get(owner.uid)
            if not known:
                return failed(batches.FAILURE_CLASS_NOT_FOUND, "the ReplicaSet is gone")
            changed = objects.ReplicaSet()
            changed.CopyFrom(known)
            changed.status.CopyFrom(status)
            self.agent.store_replica_set(changed)
            return {"done": batches.Done(uid=changed.uid, resource_version=changed.resource_version, replica_set=changed)}

        return self.answered(call, self.batch.replica_set, lambda: call.outcome(written))


def ignore(*_arguments):
    """Replaces a method that the cluster does not have."""


def is_name_of(owner, name):
    """Returns whether a server can choose this name for a ReplicaSet. No other name may become a file, a process or a host."""
    prefixes = {owner.name[:58], f"{owner.name}-"[:58]}
    return name[:-5] in prefixes and re.fullmatch("[bcdfghjklmnpqrstvwxz2456789]{5}", name[-5:]) is not None


def is_same(pod, target):
    return pod is not None and (pod.namespace, pod.name, pod.uid) == (target.namespace, target.name, target.uid)


def controller_of(owner):
    return objects.OwnerReference(api_version="apps/v1", kind="ReplicaSet", name=owner.name, uid=owner.uid)


def done_pod(pod, **more):
    return {"done": batches.Done(uid=pod.uid, resource_version=pod.resource_version, pod=pod, **more)}


def guarded(message):
    return not_started(batches.NOT_STARTED_CAUSE_GUARD, message)


def not_started(cause, message):
    return {"not_started": batches.NotStarted(cause=cause, message=message)}


def failed(kind, message):
    return failed_by(Failure(kind, message))
