/**
 * Implements the agent's side of a session with a Decree server. A controller only reports its objects, and creates and removes pods.
 * docs/protocol.md specifies the rules.
 *
 * An {@link Agent} holds the view: the current ReplicaSets and pods. The controller reports changes and provides a {@link Cluster}.
 * The Agent is for a process that is itself the cluster and runs as a single instance: the Agent has no Lease, and its epoch is 0.
 */

import { type Client, createClient, type Transport } from "@connectrpc/connect";

import { DecisionService } from "./decree/v1/decision_service_pb.js";
import { retryAfter, Session } from "./session.js";
import { View } from "./view.js";

export { Failure } from "./call.js";
export type { Cluster, Config, Mark, PodInit } from "./view.js";

const FIRST_WAIT_MS = 100;
const LAST_WAIT_MS = 2_000;
const LONGEST_WAIT_MS = 300_000;

/** Holds the view and keeps the session. Its methods may be called at any time. */
export class Agent extends View {
  private stopping = false;
  private wake = () => {};

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

  /** Makes {@link run} send the outcomes in flight, close the stream and resolve. */
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
}
