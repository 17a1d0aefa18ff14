/** Executes one batch: checks each operation immediately before it starts, and reports exactly one outcome for each. */

import { clone, create } from "@bufbuild/protobuf";

import { attempt, type Ended, failed, failedBy, Failure, type Outcome } from "./call.js";
import { madeFault } from "./check.js";
import { type Batch, type Create, FailureClass, NotStartedCause, type Victim } from "./decree/v1/batch_pb.js";
import {
  Kind, type ObjectRef, type OwnerReference, OwnerReferenceSchema, type Pod, PodSchema, type ReplicaSet, ReplicaSetSchema, type ReplicaSetStatus,
} from "./decree/v1/object_pb.js";
import { Mode } from "./decree/v1/session_pb.js";
import { type OpenSession, type PodInit, podOf, type View } from "./view.js";

/** An operation: it makes its call, and then changes the view and returns the outcome without another await. */
type Operation = () => Promise<Outcome>;

/** @internal */
export class Work {
  constructor(private readonly view: View, private readonly session: OpenSession, private readonly batch: Batch) {}

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

  /** Creates pods in rounds that double in size, and stops after the first round with a failure. */
  private async slowStart({ names, slowStartInitial }: Create): Promise<void> {
    let begin = 0;
    for (let [size, failed] = [Math.max(slowStartInitial, 1), false]; begin < names.length && !failed; size *= 2) {
      const round = names.slice(begin, begin + size);
      failed = await this.round(begin, round.map((name) => () => this.create(name)));
      begin += round.length;
    }
    for (; begin < names.length; begin++) this.report(begin, notStarted(NotStartedCause.SLOW_START, "an earlier create failed"));
  }

  /** Executes operations concurrently, reports each as it ends, and returns whether one failed. */
  private async round(begin: number, operations: Operation[]): Promise<boolean> {
    const outcomes = operations.map(async (operate, at) => {
      const outcome = await operate();
      this.report(begin + at, outcome);
      this.view.dropRemoved();
      return outcome.case === "failed";
    });
    return (await Promise.all(outcomes)).includes(true);
  }

  /** Sends the outcome of one operation, unless the session has ended. */
  private report(operation: number, outcome: Outcome): void {
    if (this.view.session === this.session) {
      this.session.send({ case: "outcomes", value: { outcomes: [{ batchId: this.batch.id, operation, outcome }] } });
    }
  }

  /** Returns the ReplicaSet of the batch, or the reason why no operation may start. */
  private owner(): ReplicaSet | Outcome {
    const { guard, replicaSet, action } = this.batch;
    const owner = this.view.replicaSets.get(replicaSet?.uid ?? "");
    const mode = this.view.config.mode || Mode.ENFORCE;
    if (!this.session.id || guard?.sessionId !== this.session.id || guard.epoch !== 0n) {
      return guarded("session: the batch is of another session or epoch");
    }
    if (mode !== Mode.ENFORCE || this.session.draining || this.view.session !== this.session) {
      return notStarted(NotStartedCause.NOT_ENFORCING, "the agent only watches, or drains");
    }
    if (!owner || owner.namespace !== replicaSet?.namespace || owner.name !== replicaSet.name) {
      return guarded("reference: there is no such ReplicaSet");
    }
    if (owner.deleted && action.case !== "writeStatus") return guarded("reference: the ReplicaSet is being deleted");
    return owner;
  }

  private async create(name: string): Promise<Outcome> {
    const waited = await this.waitForPace(name);
    const owner = waited ?? this.owner();
    if ("case" in owner) return owner;
    const refused = this.refusedCreate(owner, name);
    if (refused) return refused;
    const { view } = this;
    const [place, began] = [`${owner.namespace}/${name}`, view.mark()];
    view.creating.set(place, owner.uid);
    return this.call("create", { namespace: owner.namespace, name }, (signal) => view.cluster.create(owner, name, signal), (made) => {
      view.creating.delete(place);
      return "error" in made ? failedBy(made.error) : this.created(owner, name, began, made.value);
    });
  }

  /** Waits until the create may begin, or the session drains or ends. Returns the reason why the create may not start, or undefined. */
  private async waitForPace(name: string): Promise<Outcome | undefined> {
    const owner = this.owner();
    const refused = "case" in owner ? owner : this.refusedCreate(owner, name);
    if (refused) return refused;
    const wait = this.view.pace.reserve(performance.now(), this.view.operationTimeoutMs);
    if (typeof wait === "string") return guarded(wait);
    if (wait > 0) await this.session.rest(wait);
    return undefined;
  }

  /**
   * Makes a call, and returns the result of `finish` for its end. If the call takes too long, the outcome is TIMEOUT, and its effect is reported when the
   * call settles.
   */
  private async call<T>(
    what: string, target: Pick<ObjectRef, "namespace" | "name">, call: (signal: AbortSignal) => T | Promise<T>, finish: (ended: Ended<T>) => Outcome,
  ): Promise<Outcome> {
    const { view } = this;
    const abort = new AbortController();
    const ending = attempt(() => call(abort.signal));
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<undefined>((resolve) => {
      timer = setTimeout(() => resolve(undefined), view.operationTimeoutMs);
    });
    const ended = await Promise.race([ending, late]);
    clearTimeout(timer);
    if (ended) {
      if ("error" in ended && !(ended.error instanceof Failure)) view.tell(what, target, ended.error);
      return finish(ended);
    }
    const text = `it has not returned within ${view.operationTimeoutMs / 1_000} s`;
    view.tell(what, target, text);
    abort.abort(text);
    void ending.then((ended) => this.late(finish(ended), target));
    return failed(FailureClass.TIMEOUT, text);
  }

  /** Reports the changes of a call whose outcome was already sent. */
  private late(outcome: Outcome, target: Partial<ObjectRef>): void {
    const object = outcome.case === "done" ? outcome.value.object : undefined;
    if (object?.case === "pod") this.view.change({ case: "podApplied", value: object.value });
    if (object?.case === "replicaSet") this.view.change({ case: "replicaSetApplied", value: object.value });
    if (object?.case === "gone") {
      const { namespace, name, uid } = target;
      const resourceVersion = this.view.mark().toString();
      this.view.change({ case: "deleted", value: { kind: Kind.POD, object: { namespace, name, uid }, resourceVersion } });
    }
    this.view.dropRemoved();
  }

  /** Adds the created pod to the view, if the pod is valid. */
  private created(owner: ReplicaSet, name: string, began: bigint, value: PodInit): Outcome {
    const { view } = this;
    const made = madeOf(value);
    const fault = typeof made === "string" ? made : madeFault(owner, name, made, view.podsByUid.get(made.uid));
    if (typeof made === "string" || fault) {
      view.config.log?.(`create of ${owner.namespace}/${name} returned what cannot count: ${fault}`);
      return failed(FailureClass.INVALID, fault);
    }
    const known = view.podsByUid.get(made.uid);
    if (!known && view.gonePods.version(made.uid) > began) view.removed.push(made.uid);
    // A state that was applied while the create ran is newer than the result of the create.
    const pod = known ? clone(PodSchema, known) : made;
    const labels = Object.keys(pod.labels).length > 0 ? pod.labels : owner.templateLabels;
    Object.assign(pod, { namespace: owner.namespace, name, labels, controller: controllerOf(owner) });
    return donePod(view.storePod(pod));
  }

  private refusedCreate(owner: ReplicaSet, name: string): Outcome | undefined {
    const { creating } = this.view;
    if (!isNameOf(owner, name)) return guarded("name: it is not the ReplicaSet's and five letters");
    const same = this.view.pods().find((pod) => pod.namespace === owner.namespace && pod.name === name);
    if (same && same.controller?.uid === owner.uid && !same.deleted) return donePod(same, true);
    if (same) return failed(FailureClass.NAME_TAKEN, "the name is that of another pod");
    if (creating.has(`${owner.namespace}/${name}`)) return guarded("name: an earlier create of it has not returned");
    const count = [...creating.values()].filter((uid) => uid === owner.uid).length;
    if (this.view.active(owner.uid) + count >= wanted(owner)) return guarded("surplus: there are as many pods as desired");
    return undefined;
  }

  private async delete(victim: Victim): Promise<Outcome> {
    const owner = this.owner();
    if ("case" in owner) return owner;
    const pod = this.pod(victim.pod);
    if (!pod) return failed(FailureClass.NOT_FOUND, "there is no such pod");
    const refused = this.refusedDelete(owner, pod, victim);
    if (refused) return refused;
    this.view.deleting.add(pod.uid);
    return this.call("delete", pod, (signal) => this.view.cluster.delete(pod, victim.reason, signal), (gone) => {
      this.view.deleting.delete(pod.uid);
      if ("error" in gone) return failedBy(gone.error);
      this.view.podsByUid.delete(pod.uid);
      const resourceVersion = this.view.nextVersion();
      this.view.gonePods.add(pod.uid, this.view.mark(), true);
      return { case: "done", value: { uid: pod.uid, resourceVersion, object: { case: "gone", value: true } } };
    });
  }

  private refusedDelete(owner: ReplicaSet, pod: Pod, victim: Victim): Outcome | undefined {
    if (victim.resourceVersion && victim.resourceVersion !== pod.resourceVersion) {
      return failed(FailureClass.PRECONDITION, "the pod has another version");
    }
    if (pod.controller?.uid !== owner.uid) return guarded("ownership: the ReplicaSet does not control the pod");
    if (!this.view.isActive(pod)) return guarded("inactive: the pod has ended or is being deleted");
    if (this.view.active(owner.uid) <= wanted(owner)) return guarded("shortage: no more pods are active than desired");
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
    return this.call("setController", pod, (signal) => this.view.cluster.setController?.(pod, controller, signal), (set) => {
      if ("error" in set) return failedBy(set.error);
      const known = this.view.podsByUid.get(pod.uid);
      if (!known) return failed(FailureClass.NOT_FOUND, "the pod is gone");
      const changed = clone(PodSchema, known);
      changed.controller = controller;
      return donePod(this.view.storePod(changed));
    });
  }

  private async writeStatus(status: ReplicaSetStatus | undefined): Promise<Outcome> {
    const owner = this.owner();
    if ("case" in owner) return owner;
    if (!status) return failed(FailureClass.INVALID, "there is no status");
    return this.call("writeStatus", owner, (signal) => this.view.cluster.writeStatus?.(owner, status, signal), (written) => {
      if ("error" in written) return failedBy(written.error);
      const known = this.view.replicaSets.get(owner.uid);
      if (!known) return failed(FailureClass.NOT_FOUND, "the ReplicaSet is gone");
      const value = this.view.storeReplicaSet({ ...clone(ReplicaSetSchema, known), status });
      return { case: "done", value: { uid: value.uid, resourceVersion: value.resourceVersion, object: { case: "replicaSet", value } } };
    });
  }

  private pod(target: ObjectRef | undefined): Pod | undefined {
    const pod = this.view.podsByUid.get(target?.uid ?? "");
    return pod?.namespace === target?.namespace && pod?.name === target?.name ? pod : undefined;
  }
}

/** Returns a copy of the result of `create`, or its fault. */
function madeOf(value: unknown): Pod | string {
  if (value === undefined || value === null) return "create returned no pod";
  if (typeof value !== "object") return `create returned a ${typeof value} and no pod`;
  try {
    return podOf(value as PodInit);
  } catch (error) {
    return String(error);
  }
}

/** Returns whether a server can choose this name for a ReplicaSet. No other name may become a file, a process or a host. */
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

function guarded(message: string): Outcome {
  return notStarted(NotStartedCause.GUARD, message);
}

function notStarted(cause: NotStartedCause, message: string): Outcome {
  return { case: "notStarted", value: { cause, message } };
}
