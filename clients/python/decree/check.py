"""Checks the objects of the controller by the rules of the Kubernetes API server. The server would replace pods that break these rules without end."""

from decree.v1 import object_pb2 as objects


def check_replica_set(one):
    """Raises ValueError for a ReplicaSet whose pods would not belong to it. The message names the field."""
    fault = selector_fault(one.selector)
    if not fault:
        why = mismatch(one.selector, one.template_labels)
        fault = why and f"template_labels: the selector does not match them: {why}"
    if fault:
        raise ValueError(f"ReplicaSet {one.namespace}/{one.name}: {fault}")


def selector_fault(selector):
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


def mismatch(selector, labels):
    """Returns the first requirement of a selector that the labels do not meet, or an empty text."""
    for key, value in sorted(selector.match_labels.items()):
        if labels.get(key) != value:
            return f"{key} must be {quoted(value)}"
    for one in selector.match_expressions:
        value = labels.get(one.key)
        is_met = {
            "In": value in one.values, "NotIn": value not in one.values,
            "Exists": value is not None, "DoesNotExist": value is None,
        }
        if not is_met[one.operator]:
            return f"{one.key} {one.operator}"
    return ""


def made_fault(agent, owner, name, made):
    """Returns the fault of the result of `create` for a name, or an empty text. The server would replace a pod that does not count for its ReplicaSet."""
    if made is None:
        return "create returned no pod"
    if not isinstance(made, objects.Pod):
        return f"create returned a {type(made).__name__} and no pod"
    known = agent.pods.get(made.uid)
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


def labels_fault(owner, labels):
    for key, value in sorted(owner.template_labels.items()):
        if labels.get(key) != value:
            return f"labels: {key} must be {quoted(value)}, as in the template"
    why = mismatch(owner.selector, labels)
    return why and f"labels: the selector does not match them: {why}"


def quoted(text):
    return f'"{text}"'
