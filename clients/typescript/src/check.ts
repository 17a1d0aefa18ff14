/** Checks the objects of the controller by the rules of the Kubernetes API server. The server would replace pods that break these rules without end. */

import { type LabelSelector, type Pod, type ReplicaSet } from "./decree/v1/object_pb.js";

type Labels = { [key: string]: string };

/** Throws for a ReplicaSet whose pods would not belong to it. The message names the field. @internal */
export function checkReplicaSet({ namespace, name, selector, templateLabels }: ReplicaSet): void {
  const fault = selectorFault(selector) || templateFault(selector, templateLabels);
  if (fault) throw new RangeError(`ReplicaSet ${namespace}/${name}: ${fault}`);
}

function templateFault(selector: LabelSelector | undefined, labels: Labels): string {
  const why = mismatch(selector, labels);
  return why && `template_labels: the selector does not match them: ${why}`;
}

function selectorFault(selector: LabelSelector | undefined): string {
  const { matchLabels = {}, matchExpressions = [] } = selector ?? {};
  if (Object.keys(matchLabels).length + matchExpressions.length === 0) return "selector: it has no requirement";
  for (const [at, { operator, values }] of matchExpressions.entries()) {
    const path = `selector.match_expressions[${at}]`;
    switch (operator) {
      case "In":
      case "NotIn":
        if (values.length === 0) return `${path}.values: ${operator} needs at least one`;
        break;
      case "Exists":
      case "DoesNotExist":
        if (values.length > 0) return `${path}.values: ${operator} takes none`;
        break;
      default:
        return `${path}.operator: it is "${operator}", and none of In, NotIn, Exists, DoesNotExist`;
    }
  }
  return "";
}

/** Returns the first requirement of a selector that the labels do not meet, or an empty text. */
function mismatch(selector: LabelSelector | undefined, labels: Labels): string {
  for (const [key, value] of sorted(selector?.matchLabels ?? {})) {
    if (!Object.hasOwn(labels, key) || labels[key] !== value) return `${key} must be "${value}"`;
  }
  for (const { key, operator, values } of selector?.matchExpressions ?? []) {
    const is = Object.hasOwn(labels, key);
    const isOneOf = is && values.includes(labels[key] ?? "");
    const isMet = { In: isOneOf, NotIn: !isOneOf, Exists: is, DoesNotExist: !is }[operator];
    if (!isMet) return `${key} ${operator}`;
  }
  return "";
}

/**
 * Returns the fault of a pod that was created for a name, or an empty text. The server would replace a pod that does not count for its ReplicaSet.
 * `known` is the pod that already has its UID. @internal
 */
export function madeFault(owner: ReplicaSet, name: string, made: Pod, known: Pod | undefined): string {
  if (!/^[ -~]{1,128}$/.test(made.uid)) return "uid: it is not 1 to 128 printable ASCII characters";
  if (made.name && made.name !== name) return `name: it is "${made.name}" where "${name}" was asked for`;
  if (made.namespace && made.namespace !== owner.namespace) {
    return `namespace: it is "${made.namespace}" where "${owner.namespace}" was asked for`;
  }
  const controller = made.controller?.uid;
  if (controller && controller !== owner.uid) return `controller.uid: it is "${controller}", and that of the ReplicaSet is "${owner.uid}"`;
  if (known && known.name !== name) return `uid: it is that of the pod ${known.name}`;
  return Object.keys(made.labels).length > 0 ? labelsFault(owner, made.labels) : "";
}

function labelsFault(owner: ReplicaSet, labels: Labels): string {
  for (const [key, value] of sorted(owner.templateLabels)) {
    if (!Object.hasOwn(labels, key) || labels[key] !== value) return `labels: ${key} must be "${value}", as in the template`;
  }
  const why = mismatch(owner.selector, labels);
  return why && `labels: the selector does not match them: ${why}`;
}

function sorted(labels: Labels): [string, string][] {
  return Object.entries(labels).sort(([one], [other]) => (one < other ? -1 : 1));
}
