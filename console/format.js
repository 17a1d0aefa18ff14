// Words for numbers, times and the rules of the server.

const HALF_DAY = 43_200_000;

/** How far the clock of the server is ahead of the browser's, in milliseconds. */
let ahead = 0;

export function learnTime(seconds) {
  const difference = seconds * 1000 - Date.now();
  // The server sends whole seconds, so smaller differences do not come from the clocks.
  ahead = Math.abs(difference) > 1500 ? difference : 0;
}

/** Returns the current time by the clock of the server. */
export function now() {
  return Date.now() + ahead;
}

export function count(number, one, many = `${one}s`) {
  return `${number.toLocaleString('en')} ${number === 1 ? one : many}`;
}

/** Formats a span in its largest unit. */
export function span(milliseconds) {
  const seconds = Math.max(0, milliseconds / 1000);
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86_400)} d`;
}

/** Formats a span in whole seconds, for texts that count every second. */
export function age(milliseconds) {
  return milliseconds < 10_000 ? `${Math.max(0, Math.floor(milliseconds / 1000))} s` : span(milliseconds);
}

/** Returns a sentence about a session whose view is stale; its age in seconds is a number, or a text such as `2.5s`. */
export function late({ cluster, shard, age: seconds, missing }) {
  const heard = `the server last heard from its agent ${age(parseFloat(seconds ?? 0) * 1000)} ago`;
  return ` ${cluster}${shard ? `, shard ${shard},` : ''} ${missing ? 'does not answer' : 'may have changed'}: ${heard}.`;
}

/** Formats a time of day; if it is half a day away, with its date. */
export function clock(time) {
  return Math.abs(now() - time) < HALF_DAY ? new Date(time).toLocaleTimeString('en', { hour12: false }) : fullTime(time);
}

export function bytes(number) {
  const mebibytes = number / 1_048_576;
  return mebibytes < 10 ? `${mebibytes.toFixed(1)} MiB` : `${Math.round(mebibytes).toLocaleString('en')} MiB`;
}

export function fullTime(time) {
  return new Date(time).toLocaleString('en-CA', { hour12: false, timeZoneName: 'short' });
}

/** Shortens a text to at most `max` characters. It omits the middle, because the beginning and the end of a name identify it best. */
export function shorten(text, max) {
  if (text.length <= max || max < 3) return text;
  const end = Math.floor((max - 1) / 2);
  return `${text.slice(0, max - 1 - end)}…${text.slice(text.length - end)}`;
}

/** Returns the name of an enum value without its prefix, such as NOT_READY. */
export function word(name, prefix) {
  return String(name).replace(prefix, '');
}

/** The rules that choose victims, in the order in which the server applies them. Five are preferences, which a ReplicaSet orders. */
export const LADDER = [
  ['UNASSIGNED', 'No node yet', 'pods without a node first'],
  ['PHASE', 'Phase', 'Pending before Unknown before Running'],
  ['NOT_READY', 'Not ready', 'pods that are not ready first'],
  ['FIRST', 'First', 'pods with a label that the ReplicaSet prefers to delete first'],
  ['EMPTIEST_NODE', 'Emptiest node', 'pods on the node with the fewest active pods first'],
  ['YOUNGEST', 'Youngest', 'the pod created later first'],
  ['LEAVING_NODE', 'Leaving node', 'pods that are expected to be evicted first'],
  ['FULLEST_DOMAIN', 'Fullest domain', 'a pod of the domain with the most pods first'],
  ['DELETION_COST', 'Deletion cost', 'the lower cost first'],
  ['CROWDED_NODE', 'Crowded node', 'pods on the node with most pods of the owner first'],
  ['READY_RECENTLY', 'Ready recently', 'the pod that became ready later first, by powers of two'],
  ['RESTARTS', 'Restarts', 'the pod with more restarts first'],
  ['CREATED_RECENTLY', 'Created recently', 'the younger pod first, by powers of two'],
  ['UID', 'Uid', 'the smaller UID first'],
];
