/**
 * Keeps the rules of a session with a Decree server, so that a controller is left with its own things: what there is, and how one of them is made and
 * removed. docs/protocol.md specifies the rules.
 *
 * An {@link Agent} holds the view: the ReplicaSets and pods as they are. The controller tells it what it observes and provides a {@link Cluster}.
 * The Agent is meant for a process that is itself the cluster, one at a time: it has no Lease, and its epoch is 0.
 */

import { clone, create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { type CallOptions, type Client, createClient, type Transport } from "@connectrpc/connect";

import { type EventSchema } from "./decree/v1/event_pb.js";
import { FailureClass } from "./decree/v1/batch_pb.js";
import { DecisionService } from "./decree/v1/decision_service_pb.js";
import {
  Kind, type ObjectRef, type OwnerReference, type Pod, PodPhase, PodSchema, type ReplicaSet, ReplicaSetSchema, type ReplicaSetStatus,
} from "./decree/v1/object_pb.js";
import type { Reason } from "./decree/v1/report_pb.js";
import { Mode, type OptionsSchema } from "./decree/v1/session_pb.js";
import { retryAfter, Session } from "./session.js";

/** What a pod is made of; what is left out of namespace, name, controller, labels, version and time of creation is filled in. */
export type PodInit = MessageInitShape<typeof PodSchema>;

/**
 * Makes and removes the things that pods stand for. Its methods are called concurrently, and a new session begins only when all have settled, so they must
 * settle in time. A rejection with a {@link Failure} says that the call had no effect; after any other the effect counts as unknown, and the server asks again.
 */
export interface Cluster {
  /** Makes the pod of that name and returns it. */
  create(owner: ReplicaSet, name: string): Promise<PodInit>;
  /** Removes exactly that pod, which is identified by its uid, and resolves when it is gone. */
  delete(pod: Pod, reason: Reason | undefined): Promise<void>;
  /** Records the controller of a pod; undefined releases it. Without this method the view alone has it. */
  setController?(pod: Pod, controller: OwnerReference | undefined): Promise<void>;
  /** Records the status of a ReplicaSet. Without this method the view alone has it. */
  writeStatus?(replicaSet: ReplicaSet, status: ReplicaSetStatus): Promise<void>;
}

/** Says that an operation had no effect, and why. */
export class Failure extends Error {
  constructor(readonly kind: FailureClass, message: string) {
    super(message);
  }
}

/** Says who the agent is. Only `clusterUid` is required: the cluster, by a name that no other cluster of the server has. */
export interface Config {
  clusterUid: string;
  clusterName?: string;
  mode?: Mode;
  options?: MessageInitShape<typeof OptionsSchema>;
  /** Returns the headers of each session, such as one with a token, which may be a new one. */
  headers?: () => CallOptions["headers"];
  /** Is told of sessions that end and of objects that the server rejects. */
  log?: (line: string) => void;
}

const FIRST_WAIT_MS = 100;
const LAST_WAIT_MS = 2_000;
const LONGEST_WAIT_MS = 300_000;

/** Holds the view and keeps the session. Its methods may be called at any time. */
export class Agent {
  /** @internal Objects of the view are replaced and never changed, because frames refer to them. */
  readonly podsByUid = new Map<string, Pod>();
  /** @internal */
  readonly replicaSets = new Map<string, ReplicaSet>();
  /** @internal The uids of the ReplicaSets whose pods are being created, one each. */
  readonly creating: string[] = [];
  /** @internal */
  readonly deleting = new Set<string>();
  /** @internal */
  session: Session | undefined;
  private readonly removed = new Set<string>();
  private version = 0n;
  private stopping = false;
  private wake = () => {};

  constructor(readonly config: Config, readonly cluster: Cluster) {}

  /** Takes a pod as it is: a new one, or one that changed. */
  applyPod(pod: PodInit): void {
    this.change({ case: "podApplied", value: this.storePod(clone(PodSchema, create(PodSchema, pod))) });
  }

  /** Takes note that a pod is gone. */
  removePod(uid: string): void {
    if (this.podsByUid.has(uid)) {
      this.dropPod(uid);
    } else if (this.creating.length > 0) {
      this.removed.add(uid);
    }
  }

  /** Takes a ReplicaSet as it is. Without a status it keeps the one that was written last. Its generation must grow with each change. */
  applyReplicaSet(replicaSet: MessageInitShape<typeof ReplicaSetSchema>): void {
    const changed = clone(ReplicaSetSchema, create(ReplicaSetSchema, replicaSet));
    changed.status ??= this.replicaSets.get(changed.uid)?.status;
    this.change({ case: "replicaSetApplied", value: this.storeReplicaSet(changed) });
  }

  /** Takes note that a ReplicaSet is gone. */
  removeReplicaSet(uid: string): void {
    const known = this.replicaSets.get(uid);
    if (known && this.replicaSets.delete(uid)) this.tellDeleted(Kind.REPLICA_SET, known);
  }

  /** Sets how many pods a ReplicaSet wants, and its next generation. */
  scale(uid: string, replicas: number): void {
    const known = this.replicaSets.get(uid);
    if (known) this.applyReplicaSet({ ...clone(ReplicaSetSchema, known), replicas, generation: known.generation + 1n });
  }

  /** Returns the pods of the view. They must not be changed. */
  pods(): Pod[] {
    return [...this.podsByUid.values()];
  }

  /** Keeps a session with the server until {@link stop}. */
  async run(transport: Transport): Promise<void> {
    const client: Client<typeof DecisionService> = createClient(DecisionService, transport);
    for (let wait = FIRST_WAIT_MS; !this.stopping; wait = Math.min(2 * wait, LAST_WAIT_MS)) {
      const began = Date.now();
      const session = new Session(this);
      const error = await session.run(client);
      this.config.log?.(`session ended: ${error}`);
      if (this.stopping) return;
      if (Date.now() - began > wait) wait = FIRST_WAIT_MS;
      const asked = Math.min(Math.max(session.afterMs, retryAfter(error)), LONGEST_WAIT_MS);
      await this.rest(Math.max(wait * (0.5 + Math.random() / 2), asked));
    }
  }

  /** Has {@link run} answer what is in flight, close the stream and resolve. */
  stop(): void {
    this.stopping = true;
    this.session?.drain();
    this.wake();
  }

  private rest(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
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
    for (const uid of this.removed) {
      if (this.podsByUid.has(uid)) {
        this.removed.delete(uid);
        this.dropPod(uid);
      }
    }
    if (this.creating.length === 0) this.removed.clear();
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

  private dropPod(uid: string): void {
    const known = this.podsByUid.get(uid);
    if (known && this.podsByUid.delete(uid)) this.tellDeleted(Kind.POD, known);
  }

  private tellDeleted(kind: Kind, { namespace, name, uid }: Pick<ObjectRef, "namespace" | "name" | "uid">): void {
    this.change({ case: "deleted", value: { kind, object: { namespace, name, uid }, resourceVersion: this.nextVersion() } });
  }

  /** Sends an event. Without a session nobody needs it: the next one begins with lists. */
  private change(event: NonNullable<MessageInitShape<typeof EventSchema>["event"]>): void {
    this.session?.send({ case: "events", value: { events: [{ event }] } });
  }
}
