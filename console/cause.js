// How urgently a ReplicaSet needs attention, and why, in the words of the server.

import { now, span, word } from './format.js';

/** From most to least urgent. Each has a mark, because many people cannot tell colors apart. */
export const SEVERITIES = {
  BLOCKED: { word: 'Blocked', mark: '■' },
  SLOW: { word: 'Slow', mark: '▲' },
  WORKING: { word: 'Working', mark: '◔' },
  IN_SYNC: { word: 'In sync', mark: '✓' },
  WATCHED: { word: 'Watched only', mark: '◌' },
};

export function severityOf(row) {
  return word(row.cause.severity, 'SEVERITY_');
}

/** Returns the cause as a sentence without times; empty if the severity already says everything. */
export function causeOf(row) {
  const { text } = row.cause;
  return text === SEVERITIES.IN_SYNC.word ? '' : text;
}

/** Returns the text that ReplicaSets with the same cause share; empty if no other has this cause. */
export function groupOf(row) {
  return row.cause.group;
}

/** Returns a command that shows details or helps; empty if there is none. */
export function commandOf(row) {
  return row.cause.nextCommand;
}

/** Returns the time of the next retry; empty if the server does not retry, or waits for something other than a time. */
export function nextAttempt(row) {
  const due = row.unconvergedSince && row.nextSync ? Date.parse(row.nextSync) : 0;
  if (!due) return '';
  return due > now() ? `next attempt in ${span(due - now())}` : 'next attempt now';
}
