/** One session: ordered frames, lists, heartbeats, and its end. */

import { fromBinary, type Message, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { type Duration, durationMs, DurationSchema } from "@bufbuild/protobuf/wkt";
import { type Client, ConnectError } from "@connectrpc/connect";

import { Work } from "./batch.js";
import type { DecisionService, ReconcileRequestSchema, ReconcileResponse } from "./decree/v1/decision_service_pb.js";
import { Kind, PodSchema, ReplicaSetSchema } from "./decree/v1/object_pb.js";
import type { Frame, OpenSession, View } from "./view.js";

/** The maximum size of the part of a list in one frame, so that lists do not delay outcomes. */
const LIST_BYTES = 256 << 10;
/** The maximum number of frames that wait for a server that reads none. */
const FRAMES_MAX = 100_000;
const STOP_MS = 30_000;
/** How long a superseded agent stays away. Without this delay, two agents would end each other's sessions forever. */
const SUPERSEDED_MS = 60_000;

/** @internal */
export class Session implements OpenSession {
  id = "";
  draining = false;
  /** The delay that the server asks for before the next session. */
  afterMs = 0;
  private readonly calls = new Set<Promise<void>>();
  /** Functions that wake waiting creates. */
  private readonly resting = new Set<() => void>();
  private readonly abort = new AbortController();
  private readonly timers = new Set<NodeJS.Timeout>();
  private silent: NodeJS.Timeout | undefined;
  private queue: Frame[] = [];
  private intervalMs = 5_000;
  private received = 0n;
  private wake = () => {};

  constructor(private readonly view: View) {}

  /** Runs the session to its end, waits for its calls, and returns the reason for the end. */
  async run(client: Client<typeof DecisionService>): Promise<unknown> {
    let reason: unknown = "closed";
    try {
      const { headers } = this.view.config;
      this.open();
      this.expectFrame();
      const options = { signal: this.abort.signal, headers: headers?.() };
      for await (const frame of client.reconcile(this.numbered(), options)) this.handle(frame);
    } catch (error) {
      reason = this.abort.signal.aborted ? this.abort.signal.reason : error;
    }
    this.view.session = undefined;
    this.stopResting();
    clearTimeout(this.silent);
    for (const timer of this.timers) clearTimeout(timer);
    this.end("the stream is closed");
    // The lists of the next session contain the writes of these calls.
    await Promise.all(this.calls);
    return reason;
  }

  send(frame: Frame): void {
    if (this.queue.length < FRAMES_MAX) this.queue.push(frame);
    else this.end("the server does not read its stream");
    this.wake();
  }

  drain(): void {
    this.draining = true;
    this.stopResting();
    this.timers.add(setTimeout(() => this.end("the session did not end in time"), STOP_MS));
    this.wake();
  }

  rest(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        clearTimeout(timer);
        this.resting.delete(wake);
        resolve();
      };
      const timer = setTimeout(wake, ms);
      this.resting.add(wake);
    });
  }

  private stopResting(): void {
    for (const wake of this.resting) wake();
  }

  /** Sends Hello and lists both kinds. After it, every change follows in order. */
  private open(): void {
    const { clusterUid, clusterName = "", mode, options } = this.view.config;
    const agentInstance = crypto.randomUUID();
    this.view.session = this;
    this.send({ case: "hello", value: { protocolMin: 1, protocolMax: 1, agentInstance, clusterUid, clusterName, mode, options } });
    this.list(Kind.REPLICA_SET);
    this.list(Kind.POD);
  }

  private list(kind: Kind): void {
    this.send({ case: "snapshotBegin", value: { kind } });
    const count = kind === Kind.POD
      ? this.sendParts(this.view.pods(), (pod) => toBinary(PodSchema, pod), (pods) => ({ pods }))
      : this.sendParts([...this.view.replicaSets.values()], (one) => toBinary(ReplicaSetSchema, one), (replicaSets) => ({ replicaSets }));
    this.send({ case: "snapshotEnd", value: { kind, resourceVersion: this.view.nextVersion(), count: BigInt(count) } });
  }

  private sendParts<T extends Message>(known: T[], encode: (one: T) => Uint8Array, wrap: (part: T[]) => object): number {
    let [part, bytes]: [T[], number] = [[], 0];
    const flush = () => {
      if (part.length > 0) this.send({ case: "snapshotObjects", value: wrap(part) });
      [part, bytes] = [[], 0];
    };
    for (const one of known) {
      const size = encode(one).length;
      if (bytes + size > LIST_BYTES) flush();
      part.push(one);
      bytes += size;
    }
    flush();
    return known.length;
  }

  /** Yields numbered frames, and a heartbeat after an interval without frames. */
  private async *numbered(): AsyncGenerator<MessageInitShape<typeof ReconcileRequestSchema>> {
    for (let sequence = 1n; ; sequence++) {
      while (this.queue.length === 0) {
        if (this.abort.signal.aborted || (this.draining && this.calls.size === 0)) return;
        if (!(await this.woken())) {
          this.queue.push({ case: "heartbeat", value: { lastSequence: this.received, viewAge: { seconds: 0n } } });
        }
      }
      yield { sequence, frame: this.queue.shift() };
    }
  }

  /** Resolves to true when there may be something to do, and to false after the heartbeat interval. */
  private woken(): Promise<boolean> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(false), this.intervalMs);
      this.wake = () => {
        clearTimeout(timer);
        resolve(true);
      };
    });
  }

  private handle({ sequence, frame }: ReconcileResponse): void {
    this.received++;
    if (sequence !== this.received) return this.end(`frame ${sequence} came where ${this.received} was due`);
    switch (frame.case) {
      case "welcome":
        this.id = frame.value.sessionId;
        this.intervalMs = Math.min(Math.max(milliseconds(frame.value.heartbeatInterval), 100), 60_000);
        this.wake();
        break;
      case "batches":
        for (const batch of frame.value.batches) this.start(new Work(this.view, this, batch));
        break;
      case "resync":
        this.list(frame.value.kind);
        break;
      case "drain":
        this.afterMs = milliseconds(frame.value.reconnectAfter);
        this.drain();
        break;
      case "rejection":
        for (const one of [frame.value, ...frame.value.others]) {
          this.view.config.log?.(`rejected ${one.object?.name}: ${one.violations.map((it) => `${it.field} ${it.description}`).join(", ")}`);
        }
        break;
    }
    this.expectFrame();
  }

  private start(work: Work): void {
    const call = work.execute().finally(() => {
      this.calls.delete(call);
      this.wake();
    });
    this.calls.add(call);
  }

  /** Ends the session unless the server sends something in time. */
  private expectFrame(): void {
    clearTimeout(this.silent);
    this.silent = setTimeout(() => this.end("the server was silent for four heartbeat intervals"), 4 * this.intervalMs);
  }

  private end(why: string): void {
    this.abort.abort(why);
    this.wake();
  }
}

/** Returns the delay in milliseconds that the end of a session asks for. @internal */
export function retryAfter(error: unknown): number {
  for (const detail of ConnectError.from(error).details) {
    if (!("type" in detail && detail.value instanceof Uint8Array)) continue;
    // Only the first field of either message matters: after its tag and length comes a Duration, or the reason.
    const first = detail.value.subarray(2, 2 + (detail.value[1] ?? 0));
    if (detail.type === "google.rpc.RetryInfo") return milliseconds(fromBinary(DurationSchema, first));
    if (detail.type === "google.rpc.ErrorInfo" && new TextDecoder().decode(first) === "SESSION_SUPERSEDED") return SUPERSEDED_MS;
  }
  return 0;
}

function milliseconds(duration: Duration | undefined): number {
  return duration ? durationMs(duration) : 0;
}
