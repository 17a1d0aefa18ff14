// How much a ReplicaSet needs a person, and why: as the server says, or from the state of the ReplicaSet if the server names no cause.

import { count, now, span, word } from './format.js';

/** From most to least, each with a mark, as a color alone tells nothing to many. */
export const SEVERITIES = {
  BLOCKED: { word: 'Blocked', mark: '■' },
  SLOW: { word: 'Slow', mark: '▲' },
  WORKING: { word: 'Working', mark: '◔' },
  IN_SYNC: { word: 'In sync', mark: '✓' },
  WATCHED: { word: 'Watched only', mark: '◌' },
};

/** After how long a ReplicaSet that has not converged is slow. */
const SLOW = 60_000;

const rule = (reason) => word(reason?.rule ?? '', 'RULE_');
/** The reason for which a limit of the agent or of the cluster holds a ReplicaSet back. */
const limitOf = (row) => row.reasons.find((reason) => ['REFUSED_BY_AGENT', 'THROTTLED'].includes(rule(reason)));

/** Returns the severity of a row. */
export function severityOf(row) {
  const named = word(row.cause?.severity ?? '', 'SEVERITY_');
  if (SEVERITIES[named]) return named;
  if (row.state === 'REPLICA_SET_STATE_QUARANTINED' || row.failure) return 'BLOCKED';
  if (row.reasons.some((reason) => ['REFUSED_BY_AGENT', 'PODS_DO_NOT_LAST'].includes(rule(reason)))) return 'BLOCKED';
  if (!row.unconvergedSince) return 'IN_SYNC';
  return now() - Date.parse(row.unconvergedSince) < SLOW ? 'WORKING' : 'SLOW';
}

/** Returns the cause in a sentence, without times; empty if it says no more than the severity. */
export function causeOf(row) {
  const text = row.cause?.text || guess(row);
  return text === SEVERITIES.IN_SYNC.word ? '' : text;
}

/** Returns what the ReplicaSets with the same cause share; empty if no other has it. */
export function groupOf(row) {
  return row.cause?.group ?? '';
}

/** Returns a command that shows more or helps; empty if there is none. */
export function commandOf(row) {
  return row.cause?.nextCommand || /resume with: (.*?)\.?$/.exec(limitOf(row)?.detail ?? '')?.[1] || '';
}

/** Returns when the server tries again; empty if it does not, or waits for no time. */
export function nextAttempt(row) {
  const due = row.unconvergedSince && row.nextSync ? Date.parse(row.nextSync) : 0;
  if (!due) return '';
  return due > now() ? `next attempt in ${span(due - now())}` : 'next attempt now';
}

function guess(row) {
  const [first] = row.reasons;
  const detail = first?.detail ?? '';
  const state = word(row.state, 'REPLICA_SET_STATE_');
  if (state === 'QUARANTINED') return `Invalid, not managed: ${detail}`;
  if (state === 'ACTING') return `${count(row.operationsInFlight, 'operation')} in flight`;
  if (state === 'QUEUED') return `Queued: ${detail}`;
  if (rule(first) === 'BEING_DELETED') return 'Being deleted: its pods are left alone';
  if (!row.unconvergedSince) return row.replicas === 0 ? 'No pods desired' : 'All pods available';
  const missing = row.replicas - row.available;
  if (state === 'IN_SYNC' && missing > 0) return `${missing} of ${count(row.replicas, 'pod')} not ${row.ready < row.replicas ? 'ready' : 'available'}`;
  const limit = limitOf(row);
  if (limit) return `${rule(limit) === 'THROTTLED' ? 'Throttled by the cluster' : 'Paused by the agent'}: ${limit.detail.replace(/\.$/, '')}`;
  switch (rule(first)) {
    case 'PODS_DO_NOT_LAST':
      return `Pods end soon after they start: ${detail.replace(/; next try .*$/, '')}`;
    case 'BACKOFF':
      return row.failure ? `Refused by the cluster: ${row.failure}` : 'Backing off after failures';
    case 'AVAILABILITY_CHECK':
      return 'Pods have not been ready for long enough';
    case 'PARTIAL_VIEW':
      return 'The agent’s list is not complete yet';
    case 'VIEW_OLDER_THAN_WRITE':
      return 'The agent’s list is older than its last write';
    default:
      return detail || 'The server names no cause';
  }
}
