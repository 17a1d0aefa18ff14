"""Checks the objects of the controller by the rules of the Kubernetes API server. The server would replace pods that break these rules without end."""

import re
from collections.abc import Mapping

from decree_client.v1 import object_pb2 as objects

OWNER_KIND = "ReplicaSet"
ENDED = (objects.POD_PHASE_SUCCEEDED, objects.POD_PHASE_FAILED)


def set_fault(one: objects.ReplicaSet) -> str:
    """Returns why the pods of a ReplicaSet would not belong to it, or an empty text. It names the field."""
    fault = selector_fault(one.selector)
    if not fault:
        why = mismatch(one.selector, one.template_labels)
        fault = why and f"template_labels: the selector does not match them: {why}"
    return fault and f"ReplicaSet {one.namespace}/{one.name}: {fault}"


def selector_fault(selector: objects.LabelSelector) -> str:
    if not selector.match_labels and not selector.match_expressions:
        return "selector: it has no requirement"
    for at, one in enumerate(selector.match_expressions):
        path = f"selector.match_expressions[{at}]"
        if one.operator in ("In", "NotIn"):
            if not one.values:
                return f"{path}.values: {one.operator} needs at least one"
        elif one.operator in ("Exists", "DoesNotExist"):
            if one.values:
                return f"{path}.values: {one.operator} takes none"
        else:
            return f"{path}.operator: it is {quoted(one.operator)}, and none of In, NotIn, Exists, DoesNotExist"
    return ""


def mismatch(selector: objects.LabelSelector, labels: Mapping[str, str]) -> str:
    """Returns the first requirement of a selector that the labels do not meet, or an empty text."""
    for key, value in sorted(selector.match_labels.items()):
        if labels.get(key) != value:
            return f"{key} must be {quoted(value)}"
    for one in selector.match_expressions:
        label = labels.get(one.key)
        is_met = {
            "In": label in one.values, "NotIn": label not in one.values,
            "Exists": label is not None, "DoesNotExist": label is None,
        }
        if not is_met[one.operator]:
            return f"{one.key} {one.operator}"
    return ""


def pod_fault(owner: objects.ReplicaSet, pod: objects.Pod) -> str:
    """Returns why a ReplicaSet does not count its pod, or an empty text. An empty kind or name of the controller is filled in elsewhere."""
    kind, name, fault = pod.controller.kind, pod.controller.name, ""
    if not is_running(pod):
        return ""
    if kind not in ("", OWNER_KIND):
        fault = f"controller.kind: it is {quoted(kind)}, and its uid is that of a ReplicaSet"
    elif name not in ("", owner.name):
        fault = f"controller.name: it is {quoted(name)}, and the ReplicaSet of its uid is {quoted(owner.name)}"
    elif pod.namespace != owner.namespace:
        fault = f"namespace: it is {quoted(pod.namespace)}, and that of its ReplicaSet is {quoted(owner.namespace)}"
    elif why := mismatch(owner.selector, pod.labels):
        fault = f"labels: the selector of ReplicaSet {owner.namespace}/{owner.name} does not match them: {why}"
    return fault and f"pod {pod.namespace}/{pod.name}: {fault}"


def made_fault(owner: objects.ReplicaSet, name: str, made: object, known: objects.Pod | None) -> str:
    """Returns the fault of the result of `create` for a name, or an empty text. The server would replace a pod that does not count for its ReplicaSet.

    `known` is the pod of the view with this UID.
    """
    if made is None:
        return "create returned no pod"
    if not isinstance(made, objects.Pod):
        return f"create returned a {type(made).__name__} and no pod"
    if not (made.uid.isascii() and made.uid.isprintable() and 1 <= len(made.uid) <= 128):
        return "uid: it is not 1 to 128 printable ASCII characters"
    if made.name not in ("", name):
        return f"name: it is {quoted(made.name)} where {quoted(name)} was asked for"
    if made.namespace not in ("", owner.namespace):
        return f"namespace: it is {quoted(made.namespace)} where {quoted(owner.namespace)} was asked for"
    if made.controller.uid not in ("", owner.uid):
        return f"controller.uid: it is {quoted(made.controller.uid)}, and that of the ReplicaSet is {quoted(owner.uid)}"
    if known and known.name != name:
        return f"uid: it is that of the pod {known.name}"
    return labels_fault(owner, made.labels) if made.labels else ""


def deleted_fault(pod: objects.Pod, left: objects.Pod) -> str:
    """Returns the fault of the result of `delete`, or an empty text."""
    is_same = (left.namespace, left.name, left.uid) == (pod.namespace, pod.name, pod.uid)
    return "" if is_same else f"it returned the pod {left.namespace}/{left.name} with the uid {quoted(left.uid)}"


def labels_fault(owner: objects.ReplicaSet, labels: Mapping[str, str]) -> str:
    for key, value in sorted(owner.template_labels.items()):
        if labels.get(key) != value:
            return f"labels: {key} must be {quoted(value)}, as in the template"
    why = mismatch(owner.selector, labels)
    return why and f"labels: the selector does not match them: {why}"


def is_running(pod: objects.Pod) -> bool:
    """Returns whether a pod counts for its ReplicaSet: it has not ended and is not being deleted."""
    return not pod.HasField("deletion_timestamp") and not has_ended(pod)


def has_ended(pod: objects.Pod) -> bool:
    return pod.phase in ENDED


def is_name_of(owner: objects.ReplicaSet, name: str) -> bool:
    """Returns whether a server can choose this name for a ReplicaSet. No other name may become a file, a process or a host."""
    return name[:-5] in bases_of(owner) and re.fullmatch("[bcdfghjklmnpqrstvwxz2456789]{5}", name[-5:]) is not None


def bases_of(owner: objects.ReplicaSet) -> list[str]:
    """Returns what precedes the letters in the names of the pods of a ReplicaSet."""
    return list(dict.fromkeys([owner.name[:58], f"{owner.name}-"[:58]]))


def quoted(text: str) -> str:
    return f'"{text}"'
