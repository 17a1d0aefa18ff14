/**
 * Keeps N files in a folder. Decree decides which files to create and which to remove:
 *
 *     node dist/keeper.js --server 127.0.0.1:50051 --replicas 3 --folder /tmp/kept
 *
 * Each line on standard input is a new number of replicas. When the input ends, the keeper removes all files and exits.
 * A file that somebody removes is replaced. The files outlive a keeper that is stopped with SIGTERM or killed, and the next keeper finds them.
 */

import { watch } from "node:fs";
import { access, mkdir, readdir, unlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";

import { createGrpcTransport } from "@connectrpc/connect-node";
import { Agent, type Cluster, Failure, type PodInit } from "@decree-dev/client";
import { FailureClass } from "@decree-dev/client/v1/batch";
import { type Pod, PodPhase, type ReplicaSet } from "@decree-dev/client/v1/object";
import type { Reason } from "@decree-dev/client/v1/report";

const LABELS = { "kept-by": "keeper" };

/** The cluster: each file represents a pod. The server never reuses a name, so the name of a file is its UID. */
class Keeper implements Cluster {
  constructor(private readonly folder: string) {}

  async create(_owner: ReplicaSet, name: string): Promise<PodInit> {
    try {
      await writeFile(join(this.folder, name), "", { flag: "wx" });
    } catch (error) {
      throw new Failure(FailureClass.UNAVAILABLE, String(error));
    }
    console.log("started", name);
    return this.pod(name);
  }

  async delete(pod: Pod, reason: Reason | undefined): Promise<void> {
    console.log("stopped", pod.name, "because", reason?.detail);
    try {
      await unlink(join(this.folder, pod.name));
    } catch (error) {
      throw new Failure(FailureClass.NOT_FOUND, String(error));
    }
  }

  async find(): Promise<PodInit[]> {
    const names = (await readdir(this.folder)).filter((name) => name.startsWith("files-"));
    for (const name of names) console.log("found", name);
    return names.map((name) => this.pod(name));
  }

  private pod(name: string): PodInit {
    return {
      namespace: "local", name, uid: name, labels: LABELS, phase: PodPhase.RUNNING, nodeName: "localhost", ready: { ready: true },
      controller: { kind: "ReplicaSet", name: "files", uid: this.folder },
    };
  }
}

const { server, replicas, folder } = parseArgs({
  options: {
    server: { type: "string", default: "127.0.0.1:50051" },
    replicas: { type: "string", default: "3" },
    folder: { type: "string", default: "/tmp/decree-keeper" },
  },
}).values;
await mkdir(folder, { recursive: true });
const keeper = new Keeper(folder);
const agent = new Agent({ clusterUid: `folder:${folder}`, log: console.error }, keeper);
agent.applyReplicaSet({
  namespace: "local", name: "files", uid: folder, generation: 1n, replicas: Number(replicas),
  selector: { matchLabels: LABELS }, templateLabels: LABELS,
});
// The watch begins before the list, so that no change is missed.
const watcher = watch(folder, async (_event, name) => {
  const isThere = await access(join(folder, String(name))).then(() => true, () => false);
  if (!isThere && agent.pods().some((pod) => pod.uid === name)) {
    console.log("ended", name);
    agent.removePod(String(name));
  }
});
for (const pod of await keeper.find()) agent.applyPod(pod);

let isOver = false;
const input = createInterface({ input: process.stdin })
  .on("line", (line) => agent.scale(folder, Number(line)))
  .on("close", () => {
    isOver = true;
    agent.stop();
  });
process.once("SIGTERM", () => agent.stop());
await agent.run(createGrpcTransport({ baseUrl: `http://${server}` }));
watcher.close();
if (isOver) for (const pod of agent.pods()) await keeper.delete(pod, undefined);
input.close();
