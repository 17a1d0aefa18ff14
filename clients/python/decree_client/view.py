"""The ReplicaSets and pods that the Agent knows, with indexes: a check costs the same for ten pods and for ten thousand. The Agent's lock guards the view."""

import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TypeVar

from decree_client.check import check_replica_set, is_name_of, is_running, pod_fault
from decree_client.removals import LONG_AGO, Removal, Removals
from decree_client.v1 import event_pb2 as events, object_pb2 as objects

Name = tuple[str, str]
Copied = TypeVar("Copied", objects.Pod, objects.ReplicaSet)


class View:
    """The objects by UID. They are replaced and never changed, because frames refer to them."""

    def __init__(self, change: Callable[[events.Event], None], clock: Callable[[], float], settle: float) -> None:
        """`change` sends an event. `settle` is how long a list may lag, in seconds."""
        self.change, self.clock, self.settle = change, clock, settle
        self.version = 0
        self.pods: dict[str, objects.Pod] = {}
        self.replica_sets: dict[str, objects.ReplicaSet] = {}
        # UIDs of pods by name, and the number of active pods by the UID of their ReplicaSet.
        self.names: dict[Name, list[str]] = {}
        self.active: Counter[str] = Counter()
        # The names of pods that are being created, by the UID of their ReplicaSet, and that UID by name.
        self.creating_of: dict[str, set[Name]] = {}
        self.creating: dict[Name, str] = {}
        # UIDs of pods: those that a call deletes, those that were removed before their create returned, and those whose labels and
        # controller only the Agent may know, because it has created or adopted them.
        self.deleting: set[str] = set()
        self.removed: list[str] = []
        self.owned: set[str] = set()
        # UIDs of pods that a delete returned: they are being deleted, whatever their sources say.
        self.leaving: set[str] = set()
        # Until when a created pod survives lists that lack it, if no list has shown it.
        self.settling: dict[str, float] = {}
        # When each ReplicaSet was applied last, and the removals.
        self.applied: dict[str, int] = {}
        self.gone_pods, self.gone_replica_sets = Removals(clock, settle), Removals(clock, settle)

    # Changes that the controller observes.

    def apply_pod(self, pod: objects.Pod) -> None:
        if not pod.uid:
            raise ValueError(without_uid(pod))
        if self.gone_pods.get(pod.uid).is_answered:
            return
        pod = self.completed(pod)
        fault = self.fault(pod)
        if fault:
            raise ValueError(fault)
        self.store_pod(pod)
        self.change(events.Event(pod_applied=pod))

    def remove_pod(self, uid: str) -> None:
        if uid in self.pods:
            self.drop_pod(uid, at=self.clock())
        elif not self.gone_pods.get(uid).is_answered:
            self.gone_pods.add(uid, Removal(self.next_version(), at=self.clock()))

    def apply_replica_set(self, replica_set: objects.ReplicaSet) -> None:
        check_replica_set(replica_set)
        changed = copied(replica_set)
        known = self.replica_sets.get(changed.uid)
        if known and known.HasField("status") and not changed.HasField("status"):
            changed.status.CopyFrom(known.status)
        self.take_replica_set(changed)

    def remove_replica_set(self, uid: str) -> None:
        if uid in self.replica_sets:
            self.drop_replica_set(uid)
        else:
            self.gone_replica_sets.add(uid, Removal(self.next_version()))

    def scale(self, uid: str, replicas: int) -> None:
        changed = copied(self.replica_sets[uid])
        changed.replicas, changed.generation = replicas, changed.generation + 1
        self.take_replica_set(changed)

    # Complete lists.

    def sync_pods(self, pods: Iterable[objects.Pod], since: int) -> list[str]:
        """Replaces the pods with a list that began after the mark, and returns the faults of pods that keep their earlier state."""
        self.gone_pods.check(since)
        faults, listed, now = [], set(), self.clock()
        for pod in pods:
            if not pod.uid:
                faults.append(without_uid(pod))
                continue
            listed.add(pod.uid)
            self.settling.pop(pod.uid, None)
            if self.is_older(pod.uid, since, now):
                continue
            pod = self.completed(pod)
            known = self.pods.get(pod.uid)
            if known:
                pod.resource_version = known.resource_version
            if pod == known:
                continue
            fault = self.fault(pod)
            if fault:
                faults.append(fault)
            else:
                self.store_pod(pod)
                self.change(events.Event(pod_applied=pod))
        for uid, known in list(self.pods.items()):
            if uid not in listed and int(known.resource_version) <= since and now >= self.settling.get(uid, now):
                self.drop_pod(uid)
        return faults

    def is_older(self, uid: str, since: int, now: float) -> bool:
        """Returns whether the view has something newer about a listed pod. A pod that was deleted or removed may stay in lists that lag."""
        gone, known = self.gone_pods.get(uid), self.pods.get(uid)
        if known:
            return int(known.resource_version) > since
        return gone.version > since or now < gone.at + self.settle

    def sync_replica_sets(self, replica_sets: Iterable[objects.ReplicaSet], since: int) -> list[str]:
        """Replaces the ReplicaSets with a list that began after the mark, and returns the faults of those that keep their earlier state."""
        self.gone_replica_sets.check(since)
        faults, listed = [], set()
        for one in replica_sets:
            listed.add(one.uid)
            try:
                check_replica_set(one)
            except ValueError as fault:
                faults.append(str(fault))
                continue
            if self.applied.get(one.uid, 0) <= since and self.gone_replica_sets.get(one.uid).version <= since:
                self.sync_replica_set(copied(one), since)
        for uid in list(self.replica_sets):
            if uid not in listed and self.applied[uid] <= since:
                self.drop_replica_set(uid)
        return faults

    def sync_replica_set(self, changed: objects.ReplicaSet, since: int) -> None:
        """Stores a listed ReplicaSet. A status that was written since the mark is newer than the listed one."""
        known = self.replica_sets.get(changed.uid)
        if known:
            if known.HasField("status") and (not changed.HasField("status") or int(known.resource_version) > since):
                changed.status.CopyFrom(known.status)
            changed.resource_version = known.resource_version
        if changed != known:
            self.take_replica_set(changed)

    # States.

    def completed(self, pod: objects.Pod) -> objects.Pod:
        """Returns a copy with what its source forgets: when the pod was created, that a delete returned it, and labels and controller of own pods."""
        pod, known = copied(pod), self.pods.get(pod.uid)
        owner = self.replica_sets.get(self.creating.get((pod.namespace, pod.name), ""))
        if owner:
            complete(pod, owner)
        if known:
            if not pod.HasField("created"):
                pod.created.CopyFrom(known.created)
            if pod.uid in self.leaving and not pod.HasField("deleted"):
                pod.deleted.CopyFrom(known.deleted)
            if pod.uid in self.owned:
                if not pod.labels:
                    pod.labels.update(known.labels)
                if known.HasField("controller") and not pod.controller.uid:
                    pod.controller.CopyFrom(known.controller)
        return pod

    def fault(self, pod: objects.Pod) -> str:
        """Returns why a pod would be doubled: its ReplicaSet would not count it. Returns an empty text for all others."""
        owner = self.replica_sets.get(pod.controller.uid)
        if owner:
            return pod_fault(owner, pod)
        if pod.labels or pod.controller.uid:
            return ""
        # The names of the server show whose pod this is.
        owners = (one for one in self.replica_sets.values() if one.namespace == pod.namespace and is_name_of(one, pod.name))
        return next((pod_fault(one, pod) for one in owners), "")

    def next_version(self) -> int:
        self.version += 1
        return self.version

    def store_pod(self, pod: objects.Pod) -> objects.Pod:
        pod.resource_version = str(self.next_version())
        if not pod.HasField("created"):
            pod.created.FromSeconds(int(time.time()))
        self.take(pod.uid)
        self.pods[pod.uid] = pod
        self.names.setdefault((pod.namespace, pod.name), []).append(pod.uid)
        self.count(pod, 1)
        self.gone_pods.discard(pod.uid)
        return pod

    def take(self, uid: str) -> objects.Pod | None:
        """Removes a pod from the indexes, and returns it."""
        pod = self.pods.pop(uid, None)
        if pod:
            uids = self.names[pod.namespace, pod.name]
            uids.remove(uid)
            if not uids:
                del self.names[pod.namespace, pod.name]
            self.count(pod, -1)
        return pod

    def forget(self, uid: str) -> objects.Pod:
        """Removes a pod."""
        pod = self.take(uid)
        assert pod is not None
        self.owned.discard(uid)
        self.leaving.discard(uid)
        self.settling.pop(uid, None)
        return pod

    def drop_pod(self, uid: str, at: float = LONG_AGO) -> None:
        """Removes a pod and tells the server. A pod that a delete returned does not come back; lists may lag behind a removal at a time."""
        is_answered = uid in self.leaving
        self.change(deleted_event(objects.KIND_POD, self.forget(uid), self.next_version()))
        self.gone_pods.add(uid, Removal(self.version, is_answered, self.clock() if is_answered else at))

    def drop_removed(self) -> None:
        """Removes pods that were gone before their creates returned. The outcome shows the pod, and an event then removes it."""
        for uid in self.removed:
            if uid in self.pods:
                self.drop_pod(uid, at=self.clock())
        self.removed.clear()

    def store_replica_set(self, replica_set: objects.ReplicaSet) -> None:
        replica_set.resource_version = str(self.next_version())
        self.replica_sets[replica_set.uid] = replica_set

    def take_replica_set(self, replica_set: objects.ReplicaSet) -> None:
        self.store_replica_set(replica_set)
        self.applied[replica_set.uid] = self.version
        self.gone_replica_sets.discard(replica_set.uid)
        self.change(events.Event(replica_set_applied=replica_set))

    def drop_replica_set(self, uid: str) -> None:
        self.applied.pop(uid)
        self.change(deleted_event(objects.KIND_REPLICA_SET, self.replica_sets.pop(uid), self.next_version()))
        self.gone_replica_sets.add(uid, Removal(self.version))

    # Calls.

    def begin_create(self, name: Name, owner: str) -> None:
        self.creating[name] = owner
        self.creating_of.setdefault(owner, set()).add(name)

    def end_create(self, name: Name) -> None:
        owner = self.creating.pop(name)
        names = self.creating_of[owner]
        names.discard(name)
        if not names:
            del self.creating_of[owner]

    def begin_delete(self, uid: str) -> None:
        self.count(self.pods[uid], -1)
        self.deleting.add(uid)

    def end_delete(self, uid: str) -> None:
        self.deleting.discard(uid)
        if uid in self.pods:
            self.count(self.pods[uid], 1)

    def count(self, pod: objects.Pod, by: int) -> None:
        owner = pod.controller.uid
        if owner and self.is_active(pod):
            self.active[owner] += by
            if not self.active[owner]:
                del self.active[owner]

    def is_active(self, pod: objects.Pod) -> bool:
        return is_running(pod) and pod.uid not in self.deleting

    def places(self, owner: str) -> int:
        """Counts the active pods of a ReplicaSet, and those that are being created and that nothing has shown yet."""
        return self.active[owner] + sum(name not in self.names for name in self.creating_of.get(owner, ()))


def without_uid(pod: objects.Pod) -> str:
    return f"pod {pod.namespace}/{pod.name}: uid: it is empty"


def complete(pod: objects.Pod, owner: objects.ReplicaSet) -> None:
    """Fills in what determines the ReplicaSet of a pod."""
    if not pod.controller.uid:
        pod.controller.CopyFrom(controller_of(owner))
    if not pod.labels:
        pod.labels.update(owner.template_labels)


def controller_of(owner: objects.ReplicaSet) -> objects.OwnerReference:
    return objects.OwnerReference(api_version="apps/v1", kind="ReplicaSet", name=owner.name, uid=owner.uid)


def deleted_event(kind: "objects.Kind", known: objects.Pod | objects.ReplicaSet, version: int) -> events.Event:
    reference = objects.ObjectRef(namespace=known.namespace, name=known.name, uid=known.uid)
    return events.Event(deleted=events.Deleted(kind=kind, object=reference, resource_version=str(version)))


def copied(message: Copied) -> Copied:
    copy = type(message)()
    copy.CopyFrom(message)
    return copy
