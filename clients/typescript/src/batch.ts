/** Executes one batch: checks each operation immediately before it starts, and reports exactly one outcome for each. */

import { clone, create, type MessageInitShape } from "@bufbuild/protobuf";

import { type Agent, Failure } from "./agent.js";
import {
  type Batch, type Create, FailureClass, NotStartedCause, type OutcomeSchema, type Victim,
} from "./decree/v1/batch_pb.js";
import {
  type ObjectRef, type OwnerReference, OwnerReferenceSchema, type Pod, PodSchema, type ReplicaSet, ReplicaSetSchema, type ReplicaSetStatus,
} from "./decree/v1/object_pb.js";
import { Mode } from "./decree/v1/session_pb.js";
import type { Session } from "./session.js";

type Outcome = NonNullable<MessageInitShape<typeof OutcomeSchema>["outcome"]>;

/** An operation: it makes its call, and then, without a pause, changes the view and returns the outcome. */
type Operation = () => Promise<Outcome>;

/** @internal */
export class Work {
  constructor(private readonly agent: Agent, private readonly session: Session, private readonly batch: Batch) {}

  async execute(): Promise<void> {
    const { case: kind, value } = this.batch.action;
    switch (kind) {
      case "create":
        return this.slowStart(value);
      case "delete":
        await this.round(0, value.victims.map((victim) => () => this.delete(victim)));
        return;
      case "claim": {
        const adopts = value.adopts.map((one) => () => this.adopt(one));
        await this.round(0, [...adopts, ...value.releases.map((one) => () => this.release(one))]);
        return;
      }
      case "writeStatus":
        await this.round(0, [() => this.writeStatus(value.status)]);
    }
  }

  /** Makes pods in rounds that double, and stops after the first round with a failure. */
  private async slowStart({ names, slowStartInitial }: Create): Promise<void> {
    let begin = 0;
    for (let [size, failed] = [Math.max(slowStartInitial, 1), false]; begin < names.length && !failed; size *= 2) {
      const round = names.slice(begin, begin + size);
      failed = await this.round(begin, round.map((name) => () => this.create(name)));
      begin += round.length;
    }
    for (; begin < names.length; begin++) this.report(begin, notStarted(NotStartedCause.SLOW_START, "an earlier create failed"));
  }

  /** Executes operations at once, reports each as it ends, and returns whether one failed. */
  private async round(begin: number, operations: Operation[]): Promise<boolean> {
    const outcomes = operations.map(async (operate, at) => {
      const outcome = await operate();
      this.report(begin + at, outcome);
      this.agent.dropRemoved();
      return outcome.case === "failed";
    });
    return (await Promise.all(outcomes)).includes(true);
  }

  /** Sends the outcome of one operation, unless its session is over. */
  private report(operation: number, outcome: Outcome): void {
    if (this.agent.session === this.session) {
      this.session.send({ case: "outcomes", value: { outcomes: [{ batchId: this.batch.id, operation, outcome }] } });
    }
  }

  /** Returns the ReplicaSet that operations of the batch are for, or why none may start. */
  private owner(): ReplicaSet | Outcome {
    const { guard, replicaSet, action } = this.batch;
    const owner = this.agent.replicaSets.get(replicaSet?.uid ?? "");
    const { mode = Mode.ENFORCE } = this.agent.config;
    if (!this.session.id || guard?.sessionId !== this.session.id || guard.epoch !== 0n) {
      return guarded("session: the batch is of another session or epoch");
    }
    if (mode !== Mode.ENFORCE || this.session.draining || this.agent.session !== this.session) {
      return notStarted(NotStartedCause.NOT_ENFORCING, "the agent only watches, or drains");
    }
    if (!owner || owner.namespace !== replicaSet?.namespace || owner.name !== replicaSet.name) {
      return guarded("reference: there is no such ReplicaSet");
    }
    if (owner.deleted && action.case !== "writeStatus") return guarded("reference: the ReplicaSet is being deleted");
    return owner;
  }

  private async create(name: string): Promise<Outcome> {
    const owner = this.owner();
    if ("case" in owner) return owner;
    const refused = this.refusedCreate(owner, name);
    if (refused) return refused;
    const { agent } = this;
    agent.creating.push(owner.uid);
    const made = await attempt(() => agent.cluster.create(owner, name));
    agent.creating.splice(agent.creating.indexOf(owner.uid), 1);
    if ("failed" in made) return made.failed;
    const pod = clone(PodSchema, create(PodSchema, made.value));
    const labels = Object.keys(pod.labels).length > 0 ? pod.labels : owner.templateLabels;
    Object.assign(pod, { namespace: owner.namespace, name, labels, controller: controllerOf(owner) });
    return donePod(agent.storePod(pod));
  }

  private refusedCreate(owner: ReplicaSet, name: string): Outcome | undefined {
    if (!isNameOf(owner, name)) return guarded("name: it is not the ReplicaSet's and five letters");
    const same = this.agent.pods().find((pod) => pod.namespace === owner.namespace && pod.name === name);
    if (same && same.controller?.uid === owner.uid && !same.deleted) return donePod(same, true);
    if (same) return failed(FailureClass.NAME_TAKEN, "the name is that of another pod");
    const creating = this.agent.creating.filter((uid) => uid === owner.uid).length;
    if (this.agent.active(owner.uid) + creating >= wanted(owner)) return guarded("surplus: there are as many pods as wanted");
    return undefined;
  }

  private async delete(victim: Victim): Promise<Outcome> {
    const owner = this.owner();
    if ("case" in owner) return owner;
    const pod = this.pod(victim.pod);
    if (!pod) return failed(FailureClass.NOT_FOUND, "there is no such pod");
    const refused = this.refusedDelete(owner, pod, victim);
    if (refused) return refused;
    this.agent.deleting.add(pod.uid);
    const gone = await attempt(() => this.agent.cluster.delete(pod, victim.reason));
    this.agent.deleting.delete(pod.uid);
    if ("failed" in gone) return gone.failed;
    this.agent.podsByUid.delete(pod.uid);
    const resourceVersion = this.agent.nextVersion();
    return { case: "done", value: { uid: pod.uid, resourceVersion, object: { case: "gone", value: true } } };
  }

  private refusedDelete(owner: ReplicaSet, pod: Pod, victim: Victim): Outcome | undefined {
    if (victim.resourceVersion && victim.resourceVersion !== pod.resourceVersion) {
      return failed(FailureClass.PRECONDITION, "the pod has another version");
    }
    if (pod.controller?.uid !== owner.uid) return guarded("ownership: the ReplicaSet does not control the pod");
    if (!this.agent.isActive(pod)) return guarded("inactive: the pod has ended or is being deleted");
    if (this.agent.active(owner.uid) <= wanted(owner)) return guarded("shortage: no more pods are active than wanted");
    return undefined;
  }

  private async adopt(target: ObjectRef): Promise<Outcome> {
    const owner = this.owner();
    if ("case" in owner) return owner;
    const pod = this.pod(target);
    if (!pod) return failed(FailureClass.PRECONDITION, "there is no such pod");
    if (pod.controller && pod.controller.uid !== owner.uid) return guarded("ownership: the pod has another controller");
    return this.setController(pod, controllerOf(owner));
  }

  private async release(target: ObjectRef): Promise<Outcome> {
    const owner = this.owner();
    if ("case" in owner) return owner;
    const pod = this.pod(target);
    if (!pod) return failed(FailureClass.PRECONDITION, "there is no such pod");
    return pod.controller?.uid === owner.uid ? this.setController(pod, undefined) : donePod(pod);
  }

  private async setController(pod: Pod, controller: OwnerReference | undefined): Promise<Outcome> {
    const set = await attempt(async () => this.agent.cluster.setController?.(pod, controller));
    if ("failed" in set) return set.failed;
    const known = this.agent.podsByUid.get(pod.uid);
    if (!known) return failed(FailureClass.NOT_FOUND, "the pod is gone");
    const changed = clone(PodSchema, known);
    changed.controller = controller;
    return donePod(this.agent.storePod(changed));
  }

  private async writeStatus(status: ReplicaSetStatus | undefined): Promise<Outcome> {
    const owner = this.owner();
    if ("case" in owner) return owner;
    if (!status) return failed(FailureClass.INVALID, "there is no status");
    const written = await attempt(async () => this.agent.cluster.writeStatus?.(owner, status));
    if ("failed" in written) return written.failed;
    const known = this.agent.replicaSets.get(owner.uid);
    if (!known) return failed(FailureClass.NOT_FOUND, "the ReplicaSet is gone");
    const value = this.agent.storeReplicaSet({ ...clone(ReplicaSetSchema, known), status });
    return { case: "done", value: { uid: value.uid, resourceVersion: value.resourceVersion, object: { case: "replicaSet", value } } };
  }

  private pod(target: ObjectRef | undefined): Pod | undefined {
    const pod = this.agent.podsByUid.get(target?.uid ?? "");
    return pod?.namespace === target?.namespace && pod?.name === target?.name ? pod : undefined;
  }
}

async function attempt<T>(call: () => Promise<T>): Promise<{ value: T } | { failed: Outcome }> {
  try {
    return { value: await call() };
  } catch (error) {
    const kind = error instanceof Failure ? error.kind : FailureClass.TIMEOUT;
    return { failed: failed(kind, error instanceof Error ? error.message : String(error)) };
  }
}

/** Returns whether a name is one that a server makes for a ReplicaSet: nothing else may become a file, a process or a host. */
function isNameOf(owner: ReplicaSet, name: string): boolean {
  const prefixes = [owner.name, `${owner.name}-`].map((prefix) => prefix.slice(0, 58));
  return prefixes.includes(name.slice(0, -5)) && /^[bcdfghjklmnpqrstvwxz2456789]{5}$/.test(name.slice(-5));
}

function wanted(owner: ReplicaSet): number {
  return owner.replicas ?? 1;
}

function controllerOf({ name, uid }: ReplicaSet): OwnerReference {
  return create(OwnerReferenceSchema, { apiVersion: "apps/v1", kind: "ReplicaSet", name, uid });
}

function donePod(value: Pod, alreadyExisted = false): Outcome {
  return { case: "done", value: { uid: value.uid, resourceVersion: value.resourceVersion, object: { case: "pod", value }, alreadyExisted } };
}

function failed(kind: FailureClass, message: string): Outcome {
  return { case: "failed", value: { class: kind, message } };
}

function guarded(message: string): Outcome {
  return notStarted(NotStartedCause.GUARD, message);
}

function notStarted(cause: NotStartedCause, message: string): Outcome {
  return { case: "notStarted", value: { cause, message } };
}
