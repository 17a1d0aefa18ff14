"""The ReplicaSets and pods that the Agent knows, with indexes: a check costs the same for ten pods and for ten thousand. The Agent's lock guards the view."""

import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TypeVar

from google.protobuf.message import Message

from decree_client.check import OWNER_KIND, bases_of, has_ended, is_name_of, is_running, pod_fault, set_fault
from decree_client.removals import LONG_AGO, Removal, Removals
from decree_client.v1 import event_pb2 as events, object_pb2 as objects

Name = tuple[str, str]
Key = TypeVar("Key")
# UIDs by a key, in the order of their arrival.
Index = dict[Key, dict[str, None]]
Copied = TypeVar("Copied", bound=Message)


class View:
    """The objects by UID. They are replaced and never changed, because frames refer to them."""

    def __init__(self, change: Callable[[events.Event], None], clock: Callable[[], float], settle: float) -> None:
        """`change` sends an event. `settle` is how long a list may lag, in seconds."""
        self.change, self.clock, self.settle = change, clock, settle
        self.version = 0
        self.pods: dict[str, objects.Pod] = {}
        self.replica_sets: dict[str, objects.ReplicaSet] = {}
        # UIDs of pods by name, and by the UID of their controller; without one, by the base of their name. UIDs of ReplicaSets by the bases of
        # the names of their pods. The number of active pods by the UID of their ReplicaSet.
        self.names: Index[Name] = {}
        self.groups: Index[str | Name] = {}
        self.bases: Index[Name] = {}
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
        fault = self.change_pod(self.completed(pod))
        if fault:
            raise ValueError(fault)

    def remove_pod(self, uid: str) -> None:
        if uid in self.pods:
            self.drop_pod(uid, at=self.clock())
        elif not self.gone_pods.get(uid).is_answered:
            self.gone_pods.add(uid, Removal(self.next_version(), at=self.clock()))

    def apply_replica_set(self, replica_set: objects.ReplicaSet) -> None:
        fault = self.replica_set_fault(replica_set)
        if fault:
            raise ValueError(fault)
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
            fault = self.change_pod(pod)
            if fault:
                faults.append(fault)
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
            fault = self.replica_set_fault(one)
            if fault:
                faults.append(fault)
            elif self.applied.get(one.uid, 0) <= since and self.gone_replica_sets.get(one.uid).version <= since:
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
        """Returns a copy with what its source forgets: when the pod was created, that a delete returned it, labels and controller of own pods, and
        the kind and the name of a ReplicaSet with the UID of the controller.
        """
        pod, known = copied(pod), self.pods.get(pod.uid)
        owner = self.replica_sets.get(self.creating.get((pod.namespace, pod.name), ""))
        if owner:
            complete(pod, owner)
        if known:
            if not pod.HasField("creation_timestamp"):
                pod.creation_timestamp.CopyFrom(known.creation_timestamp)
            if pod.uid in self.leaving and not pod.HasField("deletion_timestamp"):
                pod.deletion_timestamp.CopyFrom(known.deletion_timestamp)
            if pod.uid in self.owned:
                if not pod.labels:
                    pod.labels.update(known.labels)
                if known.HasField("controller") and not pod.controller.uid:
                    pod.controller.CopyFrom(known.controller)
        owner = self.replica_sets.get(pod.controller.uid)
        if owner:
            name_owner(pod, owner)
        return pod

    def change_pod(self, pod: objects.Pod) -> str:
        """Stores a pod that the controller shows, and tells the server. Returns why not if the pod would be doubled."""
        fault = self.fault(pod)
        if not fault:
            creator = self.creating.get((pod.namespace, pod.name))
            if creator and pod.controller.uid == creator:
                self.owned.add(pod.uid)  # Whatever the create returns.
            self.store_pod(pod)
            self.change(events.Event(pod_applied=pod))
        return fault

    def fault(self, pod: objects.Pod) -> str:
        """Returns why a pod would be doubled: its ReplicaSet would not count it. Returns an empty text for all others."""
        uids = (pod.controller.uid,) if pod.controller.uid else self.bases.get(base_of(pod), ())
        owners = (self.replica_sets[uid] for uid in uids if uid in self.replica_sets)
        return next((fault for owner in owners if (fault := fault_of(owner, pod))), "")

    def replica_set_fault(self, one: objects.ReplicaSet) -> str:
        """Returns why the view does not take a ReplicaSet: it is invalid, or it is new and would not count pods that the view has of it."""
        fault = set_fault(one)
        if not fault and one.uid not in self.replica_sets:
            fault = "; ".join(fault for pod in self.pods_of(one) if (fault := fault_of(one, pod)))
        return fault

    def pods_of(self, owner: objects.ReplicaSet) -> list[objects.Pod]:
        """Returns the pods that have the ReplicaSet as their controller, and those without one whose names are like its names."""
        keys: list[str | Name] = [owner.uid, *((owner.namespace, base) for base in bases_of(owner))]
        return [self.pods[uid] for key in keys for uid in self.groups.get(key, ())]

    def next_version(self) -> int:
        self.version += 1
        return self.version

    def store_pod(self, pod: objects.Pod) -> objects.Pod:
        pod.resource_version = str(self.next_version())
        if not pod.HasField("creation_timestamp"):
            pod.creation_timestamp.FromSeconds(int(time.time()))
        self.take(pod.uid)
        self.pods[pod.uid] = pod
        enter(self.names, (pod.namespace, pod.name), pod.uid)
        enter(self.groups, group_of(pod), pod.uid)
        self.count(pod, 1)
        self.gone_pods.discard(pod.uid)
        return pod

    def take(self, uid: str) -> objects.Pod | None:
        """Removes a pod from the indexes, and returns it."""
        pod = self.pods.pop(uid, None)
        if pod:
            leave(self.names, (pod.namespace, pod.name), uid)
            leave(self.groups, group_of(pod), uid)
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
        self.forget_replica_set(replica_set.uid)
        self.replica_sets[replica_set.uid] = replica_set
        for base in bases_of(replica_set):
            enter(self.bases, (replica_set.namespace, base), replica_set.uid)

    def forget_replica_set(self, uid: str) -> objects.ReplicaSet | None:
        """Removes a ReplicaSet from the indexes, and returns it."""
        known = self.replica_sets.pop(uid, None)
        if known:
            for base in bases_of(known):
                leave(self.bases, (known.namespace, base), uid)
        return known

    def take_replica_set(self, replica_set: objects.ReplicaSet) -> None:
        """Stores a ReplicaSet and tells the server. A new one completes the controller of the pods that were there before it."""
        is_new = replica_set.uid not in self.replica_sets
        self.store_replica_set(replica_set)
        self.applied[replica_set.uid] = self.version
        self.gone_replica_sets.discard(replica_set.uid)
        self.change(events.Event(replica_set_applied=replica_set))
        for known in self.pods_of(replica_set) if is_new else ():
            pod = self.completed(known)
            if pod != known:
                self.change(events.Event(pod_applied=self.store_pod(pod)))

    def drop_replica_set(self, uid: str) -> None:
        self.applied.pop(uid)
        known = self.forget_replica_set(uid)
        assert known
        self.change(deleted_event(objects.KIND_REPLICA_SET, known, self.next_version()))
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

    def is_kept(self, pod: objects.Pod) -> bool:
        """Returns whether a pod has ended, and nobody deletes it."""
        return has_ended(pod) and not pod.HasField("deletion_timestamp") and pod.uid not in self.deleting

    def kept(self, owner: str) -> int:
        return sum(self.is_kept(self.pods[uid]) for uid in self.groups.get(owner, ()))

    def places(self, owner: str) -> int:
        """Counts the active pods of a ReplicaSet, and those that are being created and that nothing has shown yet."""
        return self.active[owner] + sum(not self.is_shown(name, owner) for name in self.creating_of.get(owner, ()))

    def is_shown(self, name: Name, owner: str) -> bool:
        """Returns whether the view has the pod with the name. Another controller's pod is none."""
        return any(self.pods[uid].controller.uid == owner for uid in self.names.get(name, ()))


def without_uid(pod: objects.Pod) -> str:
    return f"pod {pod.namespace}/{pod.name}: uid: it is empty"


def complete(pod: objects.Pod, owner: objects.ReplicaSet) -> None:
    """Fills in what determines the ReplicaSet of a pod."""
    if not pod.controller.uid:
        pod.controller.CopyFrom(controller_of(owner))
    if not pod.labels:
        pod.labels.update(owner.template_labels)


def name_owner(pod: objects.Pod, owner: objects.ReplicaSet) -> None:
    """Fills in what the server needs beside the UID of the controller."""
    pod.controller.kind, pod.controller.name = pod.controller.kind or OWNER_KIND, pod.controller.name or owner.name


def fault_of(owner: objects.ReplicaSet, pod: objects.Pod) -> str:
    """Returns why a ReplicaSet would not count a pod. Without labels and controller, its name shows that it is a pod of the ReplicaSet."""
    is_own = pod.controller.uid == owner.uid
    is_bare = not pod.controller.uid and not pod.labels
    return pod_fault(owner, pod) if is_own or is_bare and is_name_of(owner, pod.name) else ""


def base_of(pod: objects.Pod) -> Name:
    """Returns the namespace and what precedes the letters that a server appends."""
    return pod.namespace, pod.name[:-5]


def group_of(pod: objects.Pod) -> str | Name:
    return pod.controller.uid or base_of(pod)


def enter(index: Index[Key], key: Key, uid: str) -> None:
    index.setdefault(key, {})[uid] = None


def leave(index: Index[Key], key: Key, uid: str) -> None:
    uids = index[key]
    del uids[uid]
    if not uids:
        del index[key]


def controller_of(owner: objects.ReplicaSet) -> objects.OwnerReference:
    return objects.OwnerReference(api_version="apps/v1", kind=OWNER_KIND, name=owner.name, uid=owner.uid)


def deleted_event(kind: "objects.Kind", known: objects.Pod | objects.ReplicaSet, version: int) -> events.Event:
    reference = objects.ObjectRef(namespace=known.namespace, name=known.name, uid=known.uid)
    return events.Event(deleted=events.Deleted(kind=kind, object=reference, resource_version=str(version)))


def copied(message: Copied) -> Copied:
    copy = type(message)()
    copy.CopyFrom(message)
    return copy
