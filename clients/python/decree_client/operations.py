"""The operations of a server: what each one requires, which call it makes, and how the call changes the view."""

import logging
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from google.protobuf.message import Message

from decree_client.check import deleted_fault, is_name_of, made_fault
from decree_client.cluster import OPTIONAL
from decree_client.failure import Failure, UnstartedError, failed, say, text_of
from decree_client.outcomes import done_gone, done_pod, done_set, failed_with, guarded
from decree_client.removals import Removal
from decree_client.timers import Timer
from decree_client.v1 import batch_pb2 as batches, event_pb2 as events, object_pb2 as objects, report_pb2 as reports
from decree_client.view import complete, controller_of, copied

if TYPE_CHECKING:
    from decree_client.work import Work


class Operation:
    """One operation, and its call. All methods run with the lock held; only the call runs without it.

    Each operation has exactly one outcome, whatever a step raises.
    """

    # The name of the method of the cluster.
    what = ""

    def __init__(self, work: "Work", at: int) -> None:
        self.work, self.at, self.engine, self.view = work, at, work.engine, work.view
        # The object of the call, and the call itself.
        self.target = objects.ObjectRef()
        self.call: Callable[[], Any] = ignore
        self.timer: Timer | None = None
        # Ends the call, where the driver can.
        self.cancel: Callable[[], object] = ignore
        self.is_late = False

    def begin(self) -> None:
        """Starts the operation, or waits until fewer calls run."""
        if self.engine.calls < self.engine.calls_max or not self.work.session.is_live():
            self.start()
        else:
            self.pause(self.engine.operation_timeout, self.give_up, self.start)
            self.engine.queue.append(self)

    def give_up(self) -> None:
        self.resume()
        self.work.ended(self, guarded(f"busy: {self.engine.calls_max} calls run, and none has ended in time"))

    def pause(self, seconds: float, due: Callable[[], None], over: Callable[[], None]) -> None:
        """Waits. `due` follows after a time, or `over` when the session drains or ends."""
        self.timer = self.engine.after(seconds, due)
        self.work.session.waiting[self] = over

    def resume(self) -> bool:
        """Ends the wait, and returns whether it had not ended before."""
        if self.timer:
            self.timer.cancel()
        return self.work.session.waiting.pop(self, None) is not None

    def start(self) -> None:
        """Checks the operation immediately before its call, and makes the call."""
        outcome = self.guard(self.prepare)
        if outcome:
            self.work.ended(self, outcome)
            return
        self.engine.calls += 1
        self.timer = self.engine.after(self.engine.operation_timeout, self.time_out)
        try:
            self.engine.start_call(self)
        except RuntimeError as error:  # The process cannot start more threads.
            self.returned(None, Failure(batches.FAILURE_CLASS_UNAVAILABLE, str(error)))

    def prepare(self) -> batches.Outcome | None:
        """Returns the outcome if no call is needed."""
        outcome = self.work.refused() or self.refused()
        if not outcome:
            self.occupy()
        return outcome

    def refused(self) -> batches.Outcome | None:
        """Returns the outcome of an operation that the view forbids."""
        raise NotImplementedError

    def occupy(self) -> None:
        """Enters the call into the view, and sets the target and the call."""
        raise NotImplementedError

    def vacate(self) -> None:
        """Removes the call from the view."""

    def finish(self, returned: Any) -> batches.Outcome:
        """Enters the effect of the call into the view, and returns the outcome."""
        raise NotImplementedError

    def bind(self, *arguments: object) -> None:
        """Sets the call. Its objects are copies, which the code of the controller may change."""
        method = getattr(self.engine.cluster, self.what, ignore) if self.what in OPTIONAL else getattr(self.engine.cluster, self.what)
        self.call = partial(method, *(copied(one) if isinstance(one, Message) else one for one in arguments))

    def returned(self, value: object, error: BaseException | None) -> None:
        """Ends the operation. If its outcome was sent before, its effect becomes an event."""
        if self.timer:
            self.timer.cancel()
        self.guard(self.vacate)
        if error and (not isinstance(error, Failure) or isinstance(error, UnstartedError)):
            self.warn("failed: %s", text_of(error), error=error)
        outcome = failed(error) if error else self.guard(partial(self.finish, value))
        assert outcome is not None
        if self.is_late:
            self.tell(outcome)
        else:
            self.work.ended(self, outcome)
            self.engine.call_ended()
        self.view.drop_removed()

    def time_out(self) -> None:
        """Answers a call that has not returned in time. The call keeps its place."""
        self.is_late = True
        text = f"it has not returned within {self.engine.operation_timeout:g} s"
        self.warn("failed: %s", text)
        self.work.ended(self, failed_with(batches.FAILURE_CLASS_TIMEOUT, text))
        self.cancel()
        self.engine.call_ended()

    def tell(self, outcome: batches.Outcome) -> None:
        """Sends the effect of a late call."""
        done = outcome.done
        match done.WhichOneof("object"):
            case "pod":
                self.engine.change(events.Event(pod_applied=done.pod))
            case "replica_set":
                self.engine.change(events.Event(replica_set_applied=done.replica_set))
            case "gone":
                gone = events.Deleted(kind=objects.KIND_POD, object=self.target, resource_version=done.resource_version)
                self.engine.change(events.Event(deleted=gone))

    def guard(self, step: Callable[[], batches.Outcome | None]) -> batches.Outcome | None:
        """Runs a step, and returns a failure if it raises anything."""
        try:
            return step()
        except Exception as error:  # pylint: disable=broad-except
            self.warn("failed: %s", text_of(error), error=error)
            return failed(error)

    def warn(self, text: str, *words: object, error: BaseException | None = None) -> None:
        say(logging.WARNING, f"%s of %s/%s {text}", self.what, self.target.namespace, self.target.name, *words, error=error)


class Create(Operation):
    what = "create"

    def __init__(self, work: "Work", at: int, name: str) -> None:
        super().__init__(work, at)
        self.name, self.began = name, 0
        self.owner = objects.ReplicaSet()
        self.target = objects.ObjectRef(namespace=work.batch.replica_set.namespace, name=name)

    def begin(self) -> None:
        """Waits until the pace lets the create begin, or the session drains or ends."""
        wait = 0.0

        def reserve() -> batches.Outcome | None:
            nonlocal wait
            outcome = self.work.refused() or self.refused()
            if not outcome:
                wait, why = self.engine.pace.reserve(self.engine.clock(), self.engine.operation_timeout)
                outcome = guarded(why) if why else None
            return outcome

        outcome = self.guard(reserve)
        if outcome:
            self.work.ended(self, outcome)
        elif wait:
            self.pause(wait, self.begin_paced, self.begin_unpaced)
        else:
            super().begin()

    def begin_paced(self) -> None:
        self.resume()
        super().begin()

    def begin_unpaced(self) -> None:
        """Begins after the end of the session, which refuses the create."""
        self.engine.pace.give_back()
        self.begin_paced()

    def refused(self) -> batches.Outcome | None:
        owner, view, name = self.work.owner, self.view, (self.work.owner.namespace, self.name)
        if not is_name_of(owner, self.name):
            return guarded("name: it is not the ReplicaSet's and five letters")
        for uid in view.names.get(name, ()):
            pod = view.pods[uid]
            if pod.controller.uid == owner.uid and not pod.HasField("deletion_timestamp"):
                return done_pod(pod, already_existed=True)
            return failed_with(batches.FAILURE_CLASS_NAME_TAKEN, "the name is that of another pod")
        if name in view.creating:
            return guarded("name: an earlier create of it has not returned")
        if view.places(owner.uid) >= self.work.wanted():
            return guarded("surplus: there are as many pods as desired")
        return None

    def occupy(self) -> None:
        self.owner, self.began = self.work.owner, self.view.version
        self.bind(self.owner, self.name)
        self.view.begin_create((self.owner.namespace, self.name), self.owner.uid)

    def vacate(self) -> None:
        self.view.end_create((self.owner.namespace, self.name))

    def finish(self, returned: Any) -> batches.Outcome:
        """Adds the created pod to the view, if the pod is valid."""
        view, known = self.view, self.view.pods.get(getattr(returned, "uid", ""))
        fault = made_fault(self.owner, self.name, returned, known)
        if fault:
            self.warn("returned what cannot count: %s", fault)
            return failed_with(batches.FAILURE_CLASS_INVALID, fault)
        # A newer state of the pod may have been applied while the create ran.
        pod = copied(known or returned)
        pod.namespace, pod.name = self.owner.namespace, self.name
        pod.controller.CopyFrom(controller_of(self.owner))
        complete(pod, self.owner)
        if not known and view.gone_pods.get(pod.uid).version > self.began:
            view.removed.append(pod.uid)
        # Also if a watch has shown the pod: a list may lag behind the watch. A delete of the pod may have returned before its create.
        if pod.uid not in view.leaving:
            view.settling[pod.uid] = self.engine.clock() + view.settle
        view.owned.add(pod.uid)
        return done_pod(view.store_pod(pod))


class Delete(Operation):
    what = "delete"

    def __init__(self, work: "Work", at: int, victim: batches.Victim) -> None:
        super().__init__(work, at)
        self.victim, self.target = victim, victim.pod
        self.pod = objects.Pod()

    def refused(self) -> batches.Outcome | None:
        pod = self.view.pods.get(self.target.uid)
        if not is_same(pod, self.target):
            return failed_with(batches.FAILURE_CLASS_NOT_FOUND, "there is no such pod")
        assert pod is not None
        if self.victim.resource_version not in ("", pod.resource_version):
            return failed_with(batches.FAILURE_CLASS_PRECONDITION, "the pod has another version")
        owner = self.work.owner.uid
        if pod.controller.uid != owner:
            return guarded("ownership: the ReplicaSet does not control the pod")
        if self.view.is_kept(pod):
            preferences = self.work.owner.preferences
            if preferences.HasField("keep_ended") and self.view.kept(owner) > preferences.keep_ended:
                return None
            return guarded("inactive: the pod has ended, and its ReplicaSet keeps it")
        if not self.view.is_active(pod):
            return guarded("inactive: the pod has ended or is being deleted")
        if self.view.active[owner] <= self.work.wanted():
            return guarded("shortage: no more pods are active than desired")
        return None

    def occupy(self) -> None:
        self.pod = self.view.pods[self.target.uid]
        self.bind(self.pod, self.victim.reason)
        self.view.begin_delete(self.pod.uid)

    def vacate(self) -> None:
        self.view.end_delete(self.pod.uid)

    def finish(self, returned: Any) -> batches.Outcome:
        """Removes the pod, or marks it: a returned pod is being deleted, and counts no longer."""
        view = self.view
        fault = deleted_fault(self.pod, returned) if isinstance(returned, objects.Pod) else ""
        if fault:
            self.warn("failed: %s", fault)
            return failed_with(batches.FAILURE_CLASS_INVALID, fault)
        if isinstance(returned, objects.Pod) and self.pod.uid in view.pods:
            pod = copied(view.pods[self.pod.uid])
            if returned.HasField("deletion_timestamp"):
                pod.deletion_timestamp.CopyFrom(returned.deletion_timestamp)
            elif not pod.HasField("deletion_timestamp"):
                pod.deletion_timestamp.FromSeconds(int(time.time()))
            view.leaving.add(pod.uid)
            view.settling.pop(pod.uid, None)
            return done_pod(view.store_pod(pod))
        if self.pod.uid in view.pods:
            view.forget(self.pod.uid)
        view.gone_pods.add(self.pod.uid, Removal(view.next_version(), True, self.engine.clock()))
        return done_gone(self.pod.uid, view.version)


class Claim(Operation):
    """Sets or clears the controller of a pod."""

    what = "set_controller"

    def __init__(self, work: "Work", at: int, target: objects.ObjectRef) -> None:
        super().__init__(work, at)
        self.target = target
        self.controller: objects.OwnerReference | None = None

    def refused(self) -> batches.Outcome | None:
        pod = self.view.pods.get(self.target.uid)
        if not is_same(pod, self.target):
            return failed_with(batches.FAILURE_CLASS_PRECONDITION, "there is no such pod")
        assert pod is not None
        return self.refused_of(pod)

    def refused_of(self, pod: objects.Pod) -> batches.Outcome | None:
        raise NotImplementedError

    def occupy(self) -> None:
        self.bind(self.view.pods[self.target.uid], self.controller)

    def finish(self, returned: Any) -> batches.Outcome:
        known = self.view.pods.get(self.target.uid)
        if not known:
            return failed_with(batches.FAILURE_CLASS_NOT_FOUND, "the pod is gone")
        changed = copied(known)
        changed.ClearField("controller")
        if self.controller:
            changed.controller.CopyFrom(self.controller)
        if not hasattr(self.engine.cluster, self.what):
            self.view.owned.add(changed.uid)
        return done_pod(self.view.store_pod(changed))


class Adopt(Claim):
    def refused_of(self, pod: objects.Pod) -> batches.Outcome | None:
        self.controller = controller_of(self.work.owner)
        if pod.controller.uid not in ("", self.controller.uid):
            return guarded("ownership: the pod has another controller")
        return None


class Release(Claim):
    def refused_of(self, pod: objects.Pod) -> batches.Outcome | None:
        return done_pod(pod) if pod.controller.uid != self.work.owner.uid else None


class WriteStatus(Operation):
    what = "write_status"

    def __init__(self, work: "Work", at: int, status: objects.ReplicaSetStatus) -> None:
        super().__init__(work, at)
        self.status, self.target = status, work.batch.replica_set

    def refused(self) -> batches.Outcome | None:
        return None

    def occupy(self) -> None:
        self.bind(self.work.owner, self.status)

    def finish(self, returned: Any) -> batches.Outcome:
        known = self.view.replica_sets.get(self.target.uid)
        if not known:
            return failed_with(batches.FAILURE_CLASS_NOT_FOUND, "the ReplicaSet is gone")
        changed = copied(known)
        changed.status.CopyFrom(self.status)
        self.view.store_replica_set(changed)
        return done_set(changed)


def ignore(*_arguments: object) -> None:
    """Replaces a method that the cluster does not have."""


def is_same(pod: objects.Pod | None, target: objects.ObjectRef) -> bool:
    return pod is not None and (pod.namespace, pod.name, pod.uid) == (target.namespace, target.name, target.uid)
