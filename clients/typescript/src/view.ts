/** The view of an agent: the current ReplicaSets and pods, the order of their changes, and the operations in progress. */

import { clone, create, equals, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { CallOptions } from "@connectrpc/connect";

import { checkReplicaSet } from "./check.js";
import type { ReconcileRequestSchema } from "./decree/v1/decision_service_pb.js";
import type { EventSchema } from "./decree/v1/event_pb.js";
import {
  Kind, type ObjectRef, type OwnerReference, type Pod, PodPhase, PodSchema, type ReplicaSet, ReplicaSetSchema, type ReplicaSetStatus,
} from "./decree/v1/object_pb.js";
import type { Reason } from "./decree/v1/report_pb.js";
import { Mode, type OptionsSchema } from "./decree/v1/session_pb.js";
import { Pace } from "./pace.js";
import { Removals } from "./removals.js";

/** The fields of a pod. The Agent fills in an omitted namespace, name, controller, labels, version and creation time. */
export type PodInit = MessageInitShape<typeof PodSchema>;

/**
 * Creates and removes the things that pods represent. The Agent calls its methods concurrently, each with a signal that aborts at the timeout. The outcome of
 * a call that takes longer is TIMEOUT. Until that call settles, its name is not requested again, its pod counts as being created, and its effect enters the
 * view when it settles. A rejection with a {@link Failure} says that the call had no effect. After any other rejection the effect is unknown, and the server
 * retries.
 */
export interface Cluster {
  /** Creates the pod with this name and returns it. All given fields must be correct, and the UID is required; otherwise the create fails with INVALID. */
  create(owner: ReplicaSet, name: string, signal: AbortSignal): Promise<PodInit>;
  /** Removes exactly this pod, identified by its UID, and resolves when the pod is gone. */
  delete(pod: Pod, reason: Reason | undefined, signal: AbortSignal): Promise<void>;
  /** Records the controller of a pod; undefined releases the pod. Without this method, only the view contains the controller. */
  setController?(pod: Pod, controller: OwnerReference | undefined, signal: AbortSignal): Promise<void>;
  /** Records the status of a ReplicaSet. Without this method, only the view contains the status. */
  writeStatus?(replicaSet: ReplicaSet, status: ReplicaSetStatus, signal: AbortSignal): Promise<void>;
}

type ReplicaSetInit = MessageInitShape<typeof ReplicaSetSchema>;

/** Identifies and configures the agent. Only `clusterUid` is required, and it must be unique on the server. */
export interface Config {
  clusterUid: string;
  clusterName?: string;
  /** Unspecified means ENFORCE. */
  mode?: Mode;
  options?: MessageInitShape<typeof OptionsSchema>;
  /** Returns the headers of each session, such as the current token. */
  headers?: () => CallOptions["headers"];
  /** The timeout of each call of the {@link Cluster}, in milliseconds; 20,000 by default. */
  operationTimeoutMs?: number;
  /**
   * The number of creates per second after a burst of `createBurst`; the defaults are 20 and 100. 0 means no limit. A create that would wait for longer than
   * `operationTimeoutMs` does not start.
   */
  createsPerSecond?: number;
  createBurst?: number;
  /** Receives ended sessions, objects that the server rejects, and calls of the {@link Cluster} that fail with anything but a {@link Failure}. */
  log?: (line: string) => void;
}

/** A position in the order of all changes of the view. A list that begins after a mark contains all changes before the mark. */
export type Mark = bigint;

/** @internal */
export type Frame = NonNullable<MessageInitShape<typeof ReconcileRequestSchema>["frame"]>;

/** An open session, as the view and its batches use it. @internal */
export interface OpenSession {
  /** Empty until the Welcome of the server. */
  readonly id: string;
  readonly draining: boolean;
  /** Queues a frame, so that frames leave in the order of their versions. */
  send(frame: Frame): void;
  /** Begins to drain: no further operation starts, and the stream is closed after the last outcome. */
  drain(): void;
  /** Resolves after a time, or when no further operation may start. */
  rest(ms: number): Promise<void>;
}

/** The objects of a controller. Its methods may be called at any time. */
export class View {
  /** @internal Objects of the view are replaced and never changed, because frames refer to them. */
  readonly podsByUid = new Map<string, Pod>();
  /** @internal */
  readonly replicaSets = new Map<string, ReplicaSet>();
  /** @internal The UID of the ReplicaSet for each pod that is being created, by `namespace/name`. */
  readonly creating = new Map<string, string>();
  /** @internal */
  readonly deleting = new Set<string>();
  /** @internal */
  session: OpenSession | undefined;
  /** @internal The UIDs that were removed before their create returned. */
  readonly removed: string[] = [];
  /** @internal */
  readonly gonePods = new Removals();
  /** @internal */
  readonly pace: Pace;
  private readonly goneReplicaSets = new Removals();
  /** When each ReplicaSet was applied last. */
  private readonly applied = new Map<string, Mark>();
  private version = 0n;

  constructor(readonly config: Config, readonly cluster: Cluster) {
    this.pace = new Pace(config.createsPerSecond ?? 20, config.createBurst ?? 100);
  }

  /**
   * Adds or updates a pod. The last applied state counts, so never apply a state that was read before a change you already reported; for lists, use
   * {@link syncPods}. The Agent ignores a pod whose delete has succeeded. Throws if a value has another type than its field.
   */
  applyPod(pod: PodInit): void {
    const changed = podOf(pod);
    if (!this.gonePods.isAnswered(changed.uid)) this.takePod(changed);
  }

  /** Removes a pod from the view. */
  removePod(uid: string): void {
    if (this.podsByUid.has(uid)) this.dropPod(uid);
    else if (!this.gonePods.isAnswered(uid)) this.gonePods.add(uid, ++this.version);
  }

  /**
   * Adds or updates a ReplicaSet. Without a status, the last written status stays. The generation must grow with each change.
   *
   * Like the Kubernetes API server, it refuses a ReplicaSet whose selector is empty, is invalid, or does not match the labels of the template:
   * it throws a RangeError that names the field, and the view keeps the earlier ReplicaSet.
   */
  applyReplicaSet(replicaSet: ReplicaSetInit): void {
    const changed = replicaSetOf(replicaSet);
    checkReplicaSet(changed);
    changed.status ??= this.replicaSets.get(changed.uid)?.status;
    this.takeReplicaSet(changed);
  }

  /** Removes a ReplicaSet from the view. */
  removeReplicaSet(uid: string): void {
    if (this.replicaSets.has(uid)) this.dropReplicaSet(uid);
    else this.goneReplicaSets.add(uid, ++this.version);
  }

  /** Sets the desired number of pods of a ReplicaSet, and increments its generation. */
  scale(uid: string, replicas: number): void {
    const known = this.replicaSets.get(uid);
    if (known) this.takeReplicaSet({ ...clone(ReplicaSetSchema, known), replicas, generation: known.generation + 1n });
  }

  /** Returns the current position. Take it before you begin to list, and pass it to {@link syncPods} or {@link syncReplicaSets} with the list. */
  mark(): Mark {
    return this.version;
  }

  /**
   * Replaces the pods of the view with a complete list that began after the mark. Changes since the mark win: a pod created or changed since then
   * stays, and a pod removed since then does not come back. Otherwise this stores each listed pod and removes all others. Throws for pods without a
   * UID, after storing the others, and for a mark that is too old, which changes nothing.
   */
  syncPods(pods: Iterable<PodInit>, since: Mark): void {
    this.gonePods.check(since);
    const [listed, faults] = [new Set<string>(), [] as string[]];
    for (const pod of [...pods].map(podOf)) {
      listed.add(pod.uid);
      if (pod.uid) this.syncPod(pod, since);
      else faults.push(`pod ${pod.namespace}/${pod.name}: uid: it is empty`);
    }
    for (const [uid, known] of this.podsByUid) {
      if (!listed.has(uid) && BigInt(known.resourceVersion) <= since) this.dropPod(uid);
    }
    if (faults.length > 0) throw new RangeError(faults.join("; "));
  }

  private syncPod(pod: Pod, since: Mark): void {
    const known = this.podsByUid.get(pod.uid);
    if (this.gonePods.version(pod.uid) > since || (known && BigInt(known.resourceVersion) > since)) return;
    pod.resourceVersion = known?.resourceVersion ?? "";
    pod.created ??= known?.created;
    if (!known || !equals(PodSchema, pod, known)) this.takePod(pod);
  }

  /**
   * Replaces the ReplicaSets of the view with a complete list, by the rules of {@link syncPods}. If {@link applyReplicaSet} would refuse one, its earlier
   * state stays, and this throws after storing the others.
   */
  syncReplicaSets(replicaSets: Iterable<ReplicaSetInit>, since: Mark): void {
    this.goneReplicaSets.check(since);
    const [listed, faults] = [new Set<string>(), [] as string[]];
    for (const one of [...replicaSets].map(replicaSetOf)) {
      listed.add(one.uid);
      try {
        checkReplicaSet(one);
      } catch (fault) {
        faults.push((fault as Error).message);
        continue;
      }
      if ((this.applied.get(one.uid) ?? 0n) <= since && this.goneReplicaSets.version(one.uid) <= since) this.syncReplicaSet(one, since);
    }
    for (const uid of this.replicaSets.keys()) {
      if (!listed.has(uid) && (this.applied.get(uid) ?? 0n) <= since) this.dropReplicaSet(uid);
    }
    if (faults.length > 0) throw new RangeError(faults.join("; "));
  }

  /** Stores a listed ReplicaSet. A status that was written since the mark is newer than the listed one. */
  private syncReplicaSet(changed: ReplicaSet, since: Mark): void {
    const known = this.replicaSets.get(changed.uid);
    if (known && (!changed.status || BigInt(known.resourceVersion) > since)) changed.status = known.status;
    changed.resourceVersion = known?.resourceVersion ?? "";
    if (!known || !equals(ReplicaSetSchema, changed, known)) this.takeReplicaSet(changed);
  }

  /** Returns the pods of the view. Do not change them. */
  pods(): Pod[] {
    return [...this.podsByUid.values()];
  }

  /** @internal */
  get operationTimeoutMs(): number {
    return this.config.operationTimeoutMs ?? 20_000;
  }

  /** @internal Logs the failure of a call: a fault of the controller. */
  tell(what: string, { namespace, name }: Pick<ObjectRef, "namespace" | "name">, error: unknown): void {
    const text = (error instanceof Error && error.stack) || String(error);
    this.config.log?.(`${what} of ${namespace}/${name} failed: ${text}`);
  }

  /** @internal */
  nextVersion(): string {
    return String(++this.version);
  }

  /** @internal */
  storePod(pod: Pod): Pod {
    pod.resourceVersion = this.nextVersion();
    pod.created ??= timestampFromDate(new Date());
    this.podsByUid.set(pod.uid, pod);
    this.gonePods.discard(pod.uid);
    return pod;
  }

  /** @internal */
  storeReplicaSet(replicaSet: ReplicaSet): ReplicaSet {
    replicaSet.resourceVersion = this.nextVersion();
    this.replicaSets.set(replicaSet.uid, replicaSet);
    return replicaSet;
  }

  /** @internal Removes pods that were gone before their creates returned. The outcome shows the pod, and an event then removes it. */
  dropRemoved(): void {
    for (const uid of this.removed.splice(0)) this.dropPod(uid);
  }

  /** @internal Counts the active pods of a ReplicaSet. */
  active(owner: string): number {
    return this.pods().filter((pod) => pod.controller?.uid === owner && this.isActive(pod)).length;
  }

  /** @internal */
  isActive(pod: Pod): boolean {
    const ended = pod.phase === PodPhase.SUCCEEDED || pod.phase === PodPhase.FAILED;
    return !ended && !pod.deleted && !this.deleting.has(pod.uid);
  }

  private takePod(pod: Pod): void {
    this.change({ case: "podApplied", value: this.storePod(pod) });
  }

  private takeReplicaSet(replicaSet: ReplicaSet): void {
    this.change({ case: "replicaSetApplied", value: this.storeReplicaSet(replicaSet) });
    this.applied.set(replicaSet.uid, this.version);
    this.goneReplicaSets.discard(replicaSet.uid);
  }

  private dropPod(uid: string): void {
    const known = this.podsByUid.get(uid);
    if (!known) return;
    this.podsByUid.delete(uid);
    this.tellDeleted(Kind.POD, known);
    this.gonePods.add(uid, this.version);
  }

  private dropReplicaSet(uid: string): void {
    const known = this.replicaSets.get(uid);
    if (!known) return;
    this.replicaSets.delete(uid);
    this.applied.delete(uid);
    this.tellDeleted(Kind.REPLICA_SET, known);
    this.goneReplicaSets.add(uid, this.version);
  }

  private tellDeleted(kind: Kind, { namespace, name, uid }: Pick<ObjectRef, "namespace" | "name" | "uid">): void {
    this.change({ case: "deleted", value: { kind, object: { namespace, name, uid }, resourceVersion: this.nextVersion() } });
  }

  /** @internal Sends an event. Without a session it sends nothing, because the next session begins with lists. */
  change(event: NonNullable<MessageInitShape<typeof EventSchema>["event"]>): void {
    this.session?.send({ case: "events", value: { events: [{ event }] } });
  }
}

/** Copies a pod. Throws if a value has another type than its field, because the pod could not be sent. @internal */
export function podOf(pod: PodInit): Pod {
  const copy = clone(PodSchema, create(PodSchema, pod));
  toBinary(PodSchema, copy);
  return copy;
}

function replicaSetOf(replicaSet: ReplicaSetInit): ReplicaSet {
  const copy = clone(ReplicaSetSchema, create(ReplicaSetSchema, replicaSet));
  toBinary(ReplicaSetSchema, copy);
  return copy;
}
