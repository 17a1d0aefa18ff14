/** The view of an agent: the ReplicaSets and pods as they are, in the order of their changes, and what is under way. */

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

/** What a pod is made of; what is left out of namespace, name, controller, labels, version and time of creation is filled in. */
export type PodInit = MessageInitShape<typeof PodSchema>;

/**
 * Makes and removes the things that pods stand for. Its methods are called concurrently, each with a signal that is aborted when its time is over. A call that
 * takes longer than that is answered with TIMEOUT, and keeps its place until it settles: its name is not asked for again, it counts as being created, and what it
 * does goes into the view then. A rejection with a {@link Failure} says that the call had no effect; after any other the effect counts as unknown, and the server
 * asks again.
 */
export interface Cluster {
  /** Makes the pod of that name and returns it. What is not left out must be right, and there must be a uid; else the create has failed with INVALID. */
  create(owner: ReplicaSet, name: string, signal: AbortSignal): Promise<PodInit>;
  /** Removes exactly that pod, which is identified by its uid, and resolves when it is gone. */
  delete(pod: Pod, reason: Reason | undefined, signal: AbortSignal): Promise<void>;
  /** Records the controller of a pod; undefined releases it. Without this method the view alone has it. */
  setController?(pod: Pod, controller: OwnerReference | undefined, signal: AbortSignal): Promise<void>;
  /** Records the status of a ReplicaSet. Without this method the view alone has it. */
  writeStatus?(replicaSet: ReplicaSet, status: ReplicaSetStatus, signal: AbortSignal): Promise<void>;
}

type ReplicaSetInit = MessageInitShape<typeof ReplicaSetSchema>;

/** Says who the agent is. Only `clusterUid` is required: the cluster, by a name that no other cluster of the server has. */
export interface Config {
  clusterUid: string;
  clusterName?: string;
  /** Unspecified means ENFORCE. */
  mode?: Mode;
  options?: MessageInitShape<typeof OptionsSchema>;
  /** Returns the headers of each session, such as one with a token, which may be a new one. */
  headers?: () => CallOptions["headers"];
  /** Bounds each call of the {@link Cluster}, in milliseconds; 20,000 by default. */
  operationTimeoutMs?: number;
  /**
   * Paces creates, with `createBurst`: so many begin at once, and then so many a second; 20 and 100 by default. 0 means no limit. A create that would wait for
   * longer than `operationTimeoutMs` is not started.
   */
  createsPerSecond?: number;
  createBurst?: number;
  /** Is told of sessions that end, of objects that the server rejects, and of calls of the {@link Cluster} that fail other than by a {@link Failure}. */
  log?: (line: string) => void;
}

/** A place in the order of all changes of the view. What is listed after a mark was taken knows all that changed before it. */
export type Mark = bigint;

/** @internal */
export type Frame = NonNullable<MessageInitShape<typeof ReconcileRequestSchema>["frame"]>;

/** A session that is open, as the view and the batches of the session need it. @internal */
export interface OpenSession {
  /** Empty until the server has welcomed the session. */
  readonly id: string;
  readonly draining: boolean;
  /** Puts a frame in line, so that frames leave in the order of the versions that they carry. */
  send(frame: Frame): void;
  /** Begins the end: no further operation starts, and the stream is closed after the last outcome. */
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
  /** @internal The uid of the ReplicaSet for each pod that is being created, by `namespace/name`. */
  readonly creating = new Map<string, string>();
  /** @internal */
  readonly deleting = new Set<string>();
  /** @internal */
  session: OpenSession | undefined;
  /** @internal The uids that were removed before the create that made them has returned. */
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
   * Takes a pod as it is: a new one, or one that changed. The state that is applied last counts, so apply none that was read before a change that has been told
   * since; {@link syncPods} takes lists. A pod whose delete has been answered is gone, and is not applied. Throws where a value has another type than its field.
   */
  applyPod(pod: PodInit): void {
    const changed = podOf(pod);
    if (!this.gonePods.isAnswered(changed.uid)) this.takePod(changed);
  }

  /** Takes note that a pod is gone. */
  removePod(uid: string): void {
    if (this.podsByUid.has(uid)) this.dropPod(uid);
    else if (!this.gonePods.isAnswered(uid)) this.gonePods.add(uid, ++this.version);
  }

  /**
   * Takes a ReplicaSet as it is. Without a status it keeps the one that was written last. Its generation must grow with each change.
   *
   * As an API server of Kubernetes does, it refuses a ReplicaSet whose selector has no requirement, is not valid, or does not match the labels of the template:
   * it throws a RangeError that names the field, and what was known of the ReplicaSet stays.
   */
  applyReplicaSet(replicaSet: ReplicaSetInit): void {
    const changed = replicaSetOf(replicaSet);
    checkReplicaSet(changed);
    changed.status ??= this.replicaSets.get(changed.uid)?.status;
    this.takeReplicaSet(changed);
  }

  /** Takes note that a ReplicaSet is gone. */
  removeReplicaSet(uid: string): void {
    if (this.replicaSets.has(uid)) this.dropReplicaSet(uid);
    else this.goneReplicaSets.add(uid, ++this.version);
  }

  /** Sets how many pods a ReplicaSet wants, and its next generation. */
  scale(uid: string, replicas: number): void {
    const known = this.replicaSets.get(uid);
    if (known) this.takeReplicaSet({ ...clone(ReplicaSetSchema, known), replicas, generation: known.generation + 1n });
  }

  /** Returns the place that the view is at. Take it before you begin to list, and hand it to {@link syncPods} or {@link syncReplicaSets} with the list. */
  mark(): Mark {
    return this.version;
  }

  /**
   * Takes a whole list of the pods that there are, which began after the mark was taken. What has changed since the mark stays as it is: a pod that was created or
   * changed is kept, and a pod that was removed does not come back. Else each pod is taken as it is listed, and one that is not listed is removed. Throws for pods
   * without a uid when the others are taken, and for a mark that is too old, which changes nothing.
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
   * Takes a whole list of the ReplicaSets that there are, by the rules of {@link syncPods}. One that {@link applyReplicaSet} would refuse stays as it was, and is
   * thrown when the others are taken.
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

  /** Takes a ReplicaSet of a list. The status that was written since the mark is newer than the list's. */
  private syncReplicaSet(changed: ReplicaSet, since: Mark): void {
    const known = this.replicaSets.get(changed.uid);
    if (known && (!changed.status || BigInt(known.resourceVersion) > since)) changed.status = known.status;
    changed.resourceVersion = known?.resourceVersion ?? "";
    if (!known || !equals(ReplicaSetSchema, changed, known)) this.takeReplicaSet(changed);
  }

  /** Returns the pods of the view. They must not be changed. */
  pods(): Pod[] {
    return [...this.podsByUid.values()];
  }

  /** @internal */
  get operationTimeoutMs(): number {
    return this.config.operationTimeoutMs ?? 20_000;
  }

  /** @internal Has the log say that a call has failed: the fault is on this side. */
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

  /** @internal Removes pods that were gone before their creates had returned: the outcome says that they were there, and then an event that they are not. */
  dropRemoved(): void {
    for (const uid of this.removed.splice(0)) this.dropPod(uid);
  }

  /** @internal Counts the pods of a ReplicaSet that have neither ended nor are being deleted. */
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

  /** @internal Sends an event. Without a session nobody needs it: the next one begins with lists. */
  change(event: NonNullable<MessageInitShape<typeof EventSchema>["event"]>): void {
    this.session?.send({ case: "events", value: { events: [{ event }] } });
  }
}

/** Copies a pod, and throws where a value has another type than its field: it could not be sent. @internal */
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
