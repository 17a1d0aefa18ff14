/**
 * Keeps N files in a folder. Once a second it lists the files and asks Decree which to create and which to remove:
 *
 *     node dist/keeper.js --server 127.0.0.1:50051 --replicas 3 --folder /tmp/kept
 *
 * Each line on standard input is a new number of replicas. When the input ends, the keeper removes all files and exits.
 * It remembers nothing: for the same list, the server returns the same names, and no name is created twice.
 */

import { mkdir, readdir, unlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout } from "node:timers/promises";
import { parseArgs } from "node:util";

import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";

import { DecisionService } from "./decree/v1/decision_service_pb.js";
import { PodPhase } from "./decree/v1/object_pb.js";

const LABELS = { "kept-by": "keeper" };
/** The most files that a turn creates, which bounds the harm of a mistyped number. */
const CREATES_MAX = 20;

const { server, folder, lag, every, ...flags } = parseArgs({
  options: {
    server: { type: "string", default: "127.0.0.1:50051" },
    replicas: { type: "string", default: "3" },
    folder: { type: "string", default: "/tmp/decree-keeper" },
    lag: { type: "string", default: "0" }, // How many turns its lists are late, as the lists of a cloud are.
    every: { type: "string", default: "1000" }, // Milliseconds between two turns.
  },
}).values;
const client = createClient(DecisionService, createGrpcTransport({ baseUrl: `http://${server}` }));
const lists: string[][] = [];
let replicas = Number(flags.replicas);
let isOver = false;

/** The pod of a file. A file has no other identity than its name. */
function pod(name: string) {
  const controller = { kind: "ReplicaSet", name: "files", uid: folder };
  return { namespace: "local", name, uid: name, labels: LABELS, phase: PodPhase.RUNNING, nodeName: "localhost", ready: { ready: true }, controller };
}

/** Whether it had an effect. A file that exists already, or is gone already, is what a list that lags does not show. */
function tookEffect(change: Promise<void>): Promise<boolean> {
  return change.then(() => true, (error) => (["EEXIST", "ENOENT"].includes(error.code) ? false : Promise.reject(error)));
}

async function turn(): Promise<void> {
  lists.push((await readdir(folder)).filter((name) => name.startsWith("files-")));
  if (lists.length > Number(lag) + 1) lists.shift();
  const set = { namespace: "local", name: "files", uid: folder, replicas, selector: { matchLabels: LABELS }, templateLabels: LABELS };
  const { decision } = await client.decide({ replicaSet: set, pods: lists[0]?.map(pod) }, { timeoutMs: 5_000 });
  for (const name of decision?.creates.slice(0, CREATES_MAX) ?? []) {
    if (await tookEffect(writeFile(join(folder, name), "", { flag: "wx" }))) console.log("started", name);
  }
  for (const { pod, reason } of decision?.deletes ?? []) {
    if (await tookEffect(unlink(join(folder, pod?.uid ?? "")))) console.log("stopped", pod?.name, "because", reason?.detail);
  }
}

await mkdir(folder, { recursive: true });
const input = createInterface({ input: process.stdin });
input.on("line", (line) => {
  if (/^\d{1,9}$/.test(line.trim())) replicas = Number(line);
  else console.error("not a number of replicas:", line);
});
input.on("close", () => ([replicas, isOver] = [0, true]));
for (let isEmpty = false; !isEmpty; await setTimeout(Number(every))) {
  // What was created before the end of the input is in the list of a turn that begins after it.
  const isLast = isOver;
  try {
    await turn();
    isEmpty = isLast && lists.every((list) => list.length === 0);
  } catch (error) {
    console.error(String(error)); // A turn that fails changes nothing for the next one.
  }
}
