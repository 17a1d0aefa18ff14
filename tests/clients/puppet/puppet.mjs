/** A controller that executes the commands of a test. Each line on standard input is a command; each printed line is a response or an event. */

import { createInterface } from "node:readline";

import { fromBinary } from "@bufbuild/protobuf";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { Agent, Failure } from "@decree-dev/client";
import { FailureClass } from "@decree-dev/client/v1/batch";
import { PodPhase, PodSchema, ReplicaSetSchema } from "@decree-dev/client/v1/object";

const [address, timeout, perSecond, burst, mode] = process.argv.slice(2);

/** The behavior of the next creates and deletes. */
const how = { create: ["make"], delete: ["remove"] };
let since = 0n;
let release;
let released = new Promise((resolve) => (release = resolve));

const cluster = {
  create(_owner, name) {
    say("create", name);
    const [act, pod] = how.create;
    if (act === "pod") return Promise.resolve(decoded(PodSchema, pod));
    if (act === "nothing") return Promise.resolve(undefined);
    if (act === "wrong") return Promise.resolve({ uid: name, nodeName: 5 });
    return does(act).then(() => ({ uid: name, nodeName: "made", phase: PodPhase.RUNNING, ready: { ready: true } }));
  },
  delete(pod) {
    say("delete", pod.name);
    return does(how.delete[0]);
  },
};

/** Does something other than success. */
function does(act) {
  if (act === "throw") throw new TypeError("boom");
  if (act === "exit") return Promise.reject("boom");
  if (act === "hang") return released;
  if (act === "throttled") return Promise.reject(new Failure(FailureClass.THROTTLED, "slow down", 1_500));
  return Promise.resolve();
}

const agent = new Agent({
  clusterUid: "puppet", operationTimeoutMs: Number(timeout), createsPerSecond: Number(perSecond), createBurst: Number(burst), mode: Number(mode),
  log: (line) => say("log", line),
}, cluster);

const commands = {
  create: (...rest) => (how.create = rest),
  delete: (...rest) => (how.delete = rest),
  release() {
    release();
    released = new Promise((resolve) => (release = resolve));
  },
  run: () => void agent.run(createGrpcTransport({ baseUrl: `http://${address}` })).then(() => say("stopped")),
  stop: () => agent.stop(),
  "apply-replica-set": (text) => agent.applyReplicaSet(decoded(ReplicaSetSchema, text)),
  "apply-pod": (text) => agent.applyPod(decoded(PodSchema, text)),
  "remove-pod": (uid) => agent.removePod(uid),
  mark: () => (since = agent.mark()),
  "sync-pods": (...texts) => agent.syncPods(texts.map((text) => decoded(PodSchema, text)), since),
  "sync-replica-sets": (...texts) => agent.syncReplicaSets(texts.map((text) => decoded(ReplicaSetSchema, text)), since),
  pods: () => say("pods", ...agent.pods().map((pod) => `${pod.name}@${pod.nodeName}`).sort()),
};

function decoded(schema, text) {
  return fromBinary(schema, Buffer.from(text, "hex"));
}

function say(...words) {
  process.stdout.write(words.join(" ").split("\n")[0] + "\n");
}

createInterface({ input: process.stdin }).on("line", (line) => {
  const [word, ...rest] = line.trim().split(" ");
  try {
    commands[word](...rest);
    say("ok", word);
  } catch (error) {
    say("refused", error.message);
  }
});
