// A recording as steps: the input, the server's response, and the resulting state of each ReplicaSet. This module does not touch the page.

import { ENUMS, MESSAGES } from './contract.js';
import { count } from './format.js';
import { Damaged, Reader, decode } from './protobuf.js';

const MAGIC = 'decree recording 1\n';
/** The maximum size of an unpacked recording. `decree replay` has no such limit. */
export const BYTES_MAX = 64 * 1_048_576;
/** The maximum number of steps. */
export const STEPS_MAX = 100_000;
/** The maximum number of lines that a step shows for its input, and for the response. */
const LINES_MAX = 60;
const NOTHING = Object.freeze({ wanted: 0, active: 0, ready: 0, terminating: 0, flight: 0 });

/** The reason why a file cannot be shown. */
export class Unreadable extends Error {}

/** Returns the bytes of a file, unpacked if the file is compressed. */
export async function unpack(file) {
  const head = new Uint8Array(await file.slice(0, 2).arrayBuffer());
  const packed = head[0] === 0x1f && head[1] === 0x8b;
  if (!packed && file.size > BYTES_MAX) throw tooLarge();
  const stream = packed ? file.stream().pipeThrough(new DecompressionStream('gzip')) : file.stream();
  const reader = stream.getReader();
  const chunks = [];
  let length = 0;
  for (;;) {
    const { value, done } = await read(reader);
    if (done) break;
    length += value.length;
    if (length > BYTES_MAX) {
      reader.cancel().catch(() => {});
      throw tooLarge();
    }
    chunks.push(value);
  }
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.length;
  }
  return bytes;
}

async function read(reader) {
  try {
    return await reader.read();
  } catch {
    throw new Unreadable('It cannot be read to its end: the file has changed, or what is compressed in it is damaged.');
  }
}

function tooLarge() {
  return new Unreadable(`It is larger than the ${BYTES_MAX / 1_048_576} MiB that this page reads. “decree replay FILE” reads recordings of any size.`);
}

/** Returns the steps of a recording, and its header. */
export function steps(bytes) {
  const magic = new TextDecoder().decode(bytes.subarray(0, MAGIC.length));
  if (magic !== MAGIC) throw new Unreadable('It is not a recording: its first line is not “decree recording 1”.');
  const reader = new Reader(bytes, MAGIC.length);
  const header = record(reader, 'Header');
  if (!header?.hello) throw new Unreadable('It ends before its session begins.');
  const session = new Session(header);
  let ending = 'It has no end: the server was killed, or writes it still.';
  while (!reader.done) {
    const found = record(reader, 'Record');
    if (!found) {
      ending = 'It is cut off in the middle of a record.';
      break;
    }
    if (found.end) ending = endOf(found.end);
    session.take(found);
    if (session.steps.length >= STEPS_MAX) {
      ending = `Only its first ${STEPS_MAX.toLocaleString('en')} steps are shown; “decree replay” reads all.`;
      break;
    }
  }
  return { hello: header.hello.hello ?? {}, version: header.server_version ?? '', steps: session.steps, ending };
}

/** Returns the next record; undefined where the recording is truncated. */
function record(reader, name) {
  const at = reader.at;
  let piece = null;
  try {
    piece = reader.piece();
  } catch (error) {
    if (error instanceof Damaged) return null;
    throw error;
  }
  try {
    return decode(piece, MESSAGES, name);
  } catch (error) {
    if (error instanceof Damaged) throw new Unreadable(`It is damaged: the record at byte ${at} cannot be read, as ${error.message}.`);
    throw error;
  }
}

function endOf(end) {
  const why = { SESSION: 'The session ended', FULL: 'The recording reached the size that one session may take', BEHIND: 'The disk took the recording too slowly', FAILED: 'The file could not be written' };
  const reason = why[ENUMS.EndReason[end.reason ?? 0]] ?? 'It ended';
  return `${reason}${end.session_end ? `: ${end.session_end}` : ''}.`;
}

/** The state of a session, as far as its frames tell. */
class Session {
  constructor(header) {
    this.time = (header.wall_nanos ?? 0) / 1e6;
    this.steps = [];
    this.sets = new Map();
    this.pods = new Map();
    this.counts = new Map();
    this.names = new Map();
    this.batches = new Map();
    /** The versions of objects. An event can arrive after an outcome that contained a newer object. */
    this.versions = new Map();
    /** The objects of the list in progress, by kind. */
    this.listed = new Map();
    this.begin('The agent opens the session', []);
    this.frame(header.hello);
  }

  take(found) {
    this.time += ((found.elapsed_nanos ?? 0) + (found.drift_nanos ?? 0)) / 1e6;
    if (found.poll) {
      if (found.poll.frame) this.answer(found.poll.frame);
    } else if (found.frame) {
      this.begin('', []);
      this.frame(found.frame);
    } else if (found.timeout) this.idle = true;
    else if (found.drain) this.begin('The server begins to drain', []);
    else if (found.closed) this.begin('The agent closes its half of the stream', []);
    else if (found.end) this.begin('The recording ends', []);
  }

  begin(title, came) {
    this.step = { title, time: this.time, came, answers: [], changes: new Map() };
    this.idle = false;
    this.steps.push(this.step);
  }

  /** Changes the numbers of a ReplicaSet, and keeps their values from before the step. */
  change(uid, difference) {
    const before = this.counts.get(uid) ?? NOTHING;
    const after = { ...before };
    for (const [field, by] of Object.entries(difference)) after[field] += by;
    this.counts.set(uid, after);
    const known = this.step.changes.get(uid);
    this.step.changes.set(uid, { name: this.names.get(uid) ?? '', before: known ? known.before : before, after });
  }

  frame(request) {
    const { step } = this;
    const [kind, message] = Object.entries(request).find(([name]) => name !== 'sequence') ?? ['', {}];
    const tell = (title, lines = []) => {
      step.title ||= title;
      step.came.push(...lines);
    };
    if (kind === 'hello') tell('Hello', [`${message.agent_instance ?? 'an agent'} for ${message.cluster_name || message.cluster_uid}, mode ${ENUMS.Mode[message.mode ?? 0]}, epoch ${message.epoch ?? 0}`]);
    else if (kind === 'snapshot_begin') {
      this.listed.set(message.kind, new Set());
      tell(`The list of ${plural(message.kind)} begins`);
    } else if (kind === 'snapshot_objects') this.objects(message, tell);
    else if (kind === 'snapshot_end') this.endList(message.kind, tell);
    else if (kind === 'events') {
      const lines = message.events.map((event) => this.event(event));
      tell(count(message.events.length, 'event'), lines);
    } else if (kind === 'outcomes') {
      const lines = message.outcomes.map((outcome) => this.outcome(outcome));
      tell(count(message.outcomes.length, 'outcome'), lines);
    } else if (kind === 'heartbeat') tell('Heartbeat of the agent');
    else tell('A frame that this version does not know');
  }

  objects({ pods, replica_sets: sets }, tell) {
    for (const set of sets) this.setApplied(set);
    for (const pod of pods) this.podApplied(pod);
    const all = [...sets.map((set) => `ReplicaSet ${path(set)}`), ...pods.map(podLine)];
    tell(`${count(all.length, 'object')} of a list`, all);
  }

  /** Removes the objects that a complete list does not contain. */
  endList(kind, tell) {
    const listed = this.listed.get(kind) ?? new Set();
    this.listed.delete(kind);
    const known = ENUMS.Kind[kind] === 'POD' ? this.pods : this.sets;
    const gone = [...known.keys()].filter((uid) => !listed.has(uid));
    for (const uid of gone) this.gone(kind, uid);
    tell(`The list of ${plural(kind)} ends`, gone.length > 0 ? [`${count(gone.length, 'object')} not in it: gone`] : []);
  }

  event({ pod_applied: pod, replica_set_applied: set, deleted }) {
    if (pod) {
      this.podApplied(pod);
      return podLine(pod);
    }
    if (set) {
      this.setApplied(set);
      return `ReplicaSet ${path(set)}: ${set.replicas ?? 1} desired${set.deleted ? ', being deleted' : ''}`;
    }
    if (deleted) {
      this.gone(deleted.kind, deleted.object?.uid);
      return `${ENUMS.Kind[deleted.kind] === 'POD' ? 'Pod' : 'ReplicaSet'} ${path(deleted.object)} is gone`;
    }
    return 'A bookmark';
  }

  outcome({ batch_id: id, operation = 0, done, failed, not_started: idle }) {
    const batch = this.batches.get(id);
    if (batch) this.settle(id, batch);
    if (done?.pod) this.podApplied(done.pod);
    if (done?.replica_set) this.setApplied(done.replica_set);
    if (done?.gone && batch?.action === 'delete') this.replacePod(batch.uids[operation], null);
    const target = batch?.targets[operation] ?? '';
    const what = `Batch ${id}${batch ? `, ${batch.action} ${target}` : `, operation ${operation}`}`;
    if (failed) return `${what}: refused, ${ENUMS.FailureClass[failed.class ?? 0]}: ${failed.message ?? ''}`;
    if (idle) return `${what}: not started, ${ENUMS.NotStartedCause[idle.cause ?? 0]}${idle.message ? `: ${idle.message}` : ''}`;
    return `${what}: done`;
  }

  settle(id, batch) {
    batch.left -= 1;
    this.change(batch.uid, { flight: -1 });
    if (batch.left === 0) this.batches.delete(id);
  }

  answer(response) {
    if (this.idle) this.begin('Time passed', []);
    const [kind, message] = Object.entries(response).find(([name]) => name !== 'sequence') ?? ['', {}];
    const told = this.step.answers;
    if (kind === 'welcome') told.push(`Welcome: session ${message.session_id ?? ''}, server ${message.server_version ?? ''}`);
    else if (kind === 'batches') told.push(...message.batches.map((batch) => this.batch(batch)));
    else if (kind === 'resync') told.push(`Resync of ${plural(message.kind)}: ${message.cause ?? ''}`);
    else if (kind === 'drain') told.push('Drain: the agent should come back later');
    else if (kind === 'heartbeat') told.push('Heartbeat');
    else if (kind === 'rejection') told.push(`Rejection of ${path(message.object)}: ${message.violations.map(({ field, description }) => `${field}: ${description}`).join('; ')}`);
    else told.push('A frame that this version does not know');
  }

  batch({ id, replica_set: set, create, delete: remove, claim, write_status: status, reasons }) {
    const { uid } = set ?? {};
    const victims = remove?.victims ?? [];
    const named = [...(create?.names ?? []), ...victims.map(({ pod }) => pod?.name ?? ''), ...(claim ? [...claim.adopts, ...claim.releases].map(({ name }) => name ?? '') : [])];
    const action = create ? 'create' : remove ? 'delete' : claim ? 'adopt or release' : 'write the status';
    const targets = status ? [''] : named;
    if (uid && !this.names.has(uid)) this.names.set(uid, path(set));
    this.batches.set(id, { uid, action, targets, uids: victims.map(({ pod }) => pod?.uid), left: targets.length });
    if (uid) this.change(uid, { flight: targets.length });
    const why = reasons.slice(0, 1).map(reasonLine).join('');
    const list = victims.length > 0 ? victims.map(({ pod, reason }) => `${pod?.name ?? ''} (${reasonLine(reason)})`) : named;
    const pods = status ? ` ${status.status?.replicas ?? 0} replicas, ${status.status?.ready_replicas ?? 0} ready` : ` ${list.join(', ')}`;
    return `Batch ${id} for ${path(set)}: ${action}${pods}${why && victims.length === 0 ? `; ${why}` : ''}`;
  }

  /** Returns whether an object is at least as new as the known one. */
  isNew({ uid, resource_version: version }) {
    const number = Number(version);
    if (number < this.versions.get(uid)) return false;
    this.versions.set(uid, number);
    return true;
  }

  setApplied(set) {
    this.listed.get(ENUMS.Kind.indexOf('REPLICA_SET'))?.add(set.uid);
    if (!this.isNew(set)) return;
    this.names.set(set.uid, path(set));
    const wanted = set.replicas ?? 1;
    const before = this.sets.get(set.uid) ?? 0;
    this.sets.set(set.uid, wanted);
    if (wanted !== before || !this.counts.has(set.uid)) this.change(set.uid, { wanted: wanted - before });
  }

  podApplied(pod) {
    this.listed.get(ENUMS.Kind.indexOf('POD'))?.add(pod.uid);
    if (!this.isNew(pod)) return;
    const phase = ENUMS.PodPhase[pod.phase ?? 0];
    const ended = phase === 'SUCCEEDED' || phase === 'FAILED';
    const active = !ended && !pod.deleted;
    this.replacePod(pod.uid, { owner: pod.controller?.uid ?? '', active: Number(active), ready: Number(active && Boolean(pod.ready?.ready)), terminating: Number(!ended && Boolean(pod.deleted)) });
  }

  /** Updates the counts for a pod; `after` is absent if the pod is gone. */
  replacePod(uid, after) {
    const before = this.pods.get(uid);
    if (after) this.pods.set(uid, after);
    else this.pods.delete(uid);
    const fields = ['active', 'ready', 'terminating'];
    if (before && after && before.owner === after.owner && fields.every((field) => before[field] === after[field])) return;
    for (const [pod, sign] of [[before, -1], [after, 1]]) {
      if (pod?.owner) this.change(pod.owner, Object.fromEntries(fields.map((field) => [field, sign * pod[field]])));
    }
  }

  gone(kind, uid) {
    if (ENUMS.Kind[kind] === 'POD') {
      this.replacePod(uid, null);
      return;
    }
    const wanted = this.sets.get(uid);
    this.sets.delete(uid);
    if (wanted) this.change(uid, { wanted: -wanted });
  }
}

function plural(kind) {
  return ENUMS.Kind[kind] === 'POD' ? 'pods' : 'ReplicaSets';
}

function path(object) {
  return object ? `${object.namespace ?? ''}/${object.name ?? ''}` : 'an object';
}

function podLine(pod) {
  const state = [ENUMS.PodPhase[pod.phase ?? 0].toLowerCase(), pod.ready?.ready ? 'ready' : 'not ready', pod.node_name ? `on ${pod.node_name}` : 'without a node', ...(pod.deleted ? ['terminating'] : [])];
  return `Pod ${path(pod)}: ${state.join(', ')}`;
}

function reasonLine(reason) {
  return reason ? `${ENUMS.Rule[reason.rule ?? 0] ?? 'UNKNOWN'}${reason.detail ? `: ${reason.detail}` : ''}` : '';
}

/** Returns as many lines as a step shows. */
export function shown(lines) {
  const more = lines.length - LINES_MAX;
  return more > 0 ? [...lines.slice(0, LINES_MAX), `and ${more.toLocaleString('en')} more`] : lines;
}
