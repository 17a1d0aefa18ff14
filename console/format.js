// Words for what the server says: times, states, and what a ReplicaSet waits for in a sentence.

/** How far the clock of the server is ahead of this one, in milliseconds. */
let ahead = 0;

/** Learns the time of the server. */
export function learnTime(seconds) {
  const difference = seconds * 1000 - Date.now();
  // The server says whole seconds: only what is more than that is a difference of clocks.
  ahead = Math.abs(difference) > 1500 ? difference : 0;
}

/** Returns the time of the server. */
export function now() {
  return Date.now() + ahead;
}

export function count(number, one, many = `${one}s`) {
  return `${number.toLocaleString('en')} ${number === 1 ? one : many}`;
}

/** Returns a span in its largest unit. */
export function span(milliseconds) {
  const seconds = Math.max(0, milliseconds / 1000);
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86_400)} d`;
}

/** Returns a whole span, for what counts on each second. */
export function age(milliseconds) {
  return milliseconds < 10_000 ? `${Math.max(0, Math.floor(milliseconds / 1000))} s` : span(milliseconds);
}

export function clock(time) {
  return new Date(time).toLocaleTimeString('en', { hour12: false });
}

export function bytes(number) {
  const mebibytes = number / 1_048_576;
  return mebibytes < 10 ? `${mebibytes.toFixed(1)} MiB` : `${Math.round(mebibytes).toLocaleString('en')} MiB`;
}

/** Returns the word of an enum without its prefix, such as NOT_READY. */
export function word(name, prefix) {
  return String(name).replace(prefix, '');
}

export const STATES = {
  IN_SYNC: { word: 'In sync', mark: '✓' },
  QUEUED: { word: 'Queued', mark: '…' },
  ACTING: { word: 'Acting', mark: '▶' },
  WAITING: { word: 'Waiting', mark: '◷' },
  QUARANTINED: { word: 'Quarantined', mark: '⚠' },
  STARTING: { word: 'Starting', mark: '◔' },
};

/** Returns how a row stands: its state, but for one that is in sync and whose pods are not available yet. */
export function stateOf(row) {
  const state = word(row.state, 'REPLICA_SET_STATE_');
  if (state === 'IN_SYNC' && row.unconvergedSince && row.available < row.replicas) return 'STARTING';
  // One that has all it wants and is only looked at again waits for nothing.
  if (state === 'WAITING' && !row.unconvergedSince && row.reasons[0]?.rule === 'RULE_AVAILABILITY_CHECK') return 'IN_SYNC';
  return state;
}

/** Returns whether a row waits out failures. */
export function isBackingOff(row) {
  return row.reasons.some((reason) => reason.rule === 'RULE_BACKOFF');
}

/** Returns the reason for which a limit holds a row back: one of the agent, or one of the cluster, which asked to wait. */
export function limitOf(row) {
  return row.reasons.find((reason) => ['RULE_REFUSED_BY_AGENT', 'RULE_THROTTLED'].includes(reason.rule));
}

/** Says what a ReplicaSet waits for, in a sentence. */
export function sentence(row) {
  const [first] = row.reasons;
  const rule = first ? word(first.rule, 'RULE_') : '';
  const due = row.nextSync ? Date.parse(row.nextSync) : 0;
  const until = due ? ` until ${clock(due)}, ${due > now() ? `in ${span(due - now())}` : 'that is now'}` : '';
  switch (stateOf(row)) {
    case 'QUARANTINED':
      return `Left alone, as it is invalid: ${first ? first.detail : ''}.`;
    case 'ACTING':
      return `Waiting for the agent: ${count(row.operationsInFlight, 'operation')} without an outcome.`;
    case 'QUEUED':
      return `Queued for its sync: ${first ? first.detail : ''}.`;
    case 'STARTING':
      return `As many pods as wanted; ${row.replicas - row.available} of them ${row.ready < row.replicas ? 'not ready' : 'not available'} yet.`;
    case 'IN_SYNC':
      return rule === 'BEING_DELETED' ? 'Being deleted: its pods are left alone.' : 'As many pods as wanted, all available.';
    default:
  }
  const limit = limitOf(row);
  const said = limit?.detail ? `: ${limit.detail.replace(/\.$/, '')}` : '';
  if (limit?.rule === 'RULE_THROTTLED') return `Throttled by the cluster${until}${said}.`;
  if (limit) return `Held back by the agent${until.replace(' until', ', next try at')}${said}.`;
  if (rule === 'PODS_DO_NOT_LAST') return `Not creating pods${until}: ${first.detail.replace(/; next try .*$/, '')}.`;
  if (rule === 'BACKOFF') return `Backing off${until}${row.failure ? `, as the cluster refused: ${row.failure}` : ''}.`;
  if (rule === 'AVAILABILITY_CHECK') return `Waiting for pods to have been ready long enough${until}.`;
  if (rule === 'PARTIAL_VIEW') return 'Waiting for the agent’s list to be complete.';
  if (rule === 'VIEW_OLDER_THAN_WRITE') return 'Waiting for a list that shows its last write.';
  return `Waiting for news: ${first ? first.detail : 'nothing is known'}.`;
}

/** The rules by which pods are chosen, in the order in which they are asked. */
export const LADDER = [
  ['UNASSIGNED', 'No node yet', 'pods without a node go before pods with one'],
  ['PHASE', 'Phase', 'Pending before Unknown before Running'],
  ['NOT_READY', 'Not ready', 'pods that are not ready go before ready ones'],
  ['DELETION_COST', 'Deletion cost', 'the lower cost goes first'],
  ['CROWDED_NODE', 'Crowded node', 'pods go first from the node with the most pods of the owner'],
  ['READY_RECENTLY', 'Ready recently', 'the one that became ready later goes first, by powers of two'],
  ['RESTARTS', 'Restarts', 'the one that restarted more often goes first'],
  ['CREATED_RECENTLY', 'Created recently', 'the younger one goes first, by powers of two'],
  ['UID', 'Uid', 'the smaller uid goes first'],
];
