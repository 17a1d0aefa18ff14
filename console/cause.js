// How much a ReplicaSet needs a person, and why: as the server says, which this page is always from.

import { now, span, word } from './format.js';

/** From most to least, each with a mark, as a color alone tells nothing to many. */
export const SEVERITIES = {
  BLOCKED: { word: 'Blocked', mark: '■' },
  SLOW: { word: 'Slow', mark: '▲' },
  WORKING: { word: 'Working', mark: '◔' },
  IN_SYNC: { word: 'In sync', mark: '✓' },
  WATCHED: { word: 'Watched only', mark: '◌' },
};

/** Returns the severity of a row. */
export function severityOf(row) {
  return word(row.cause.severity, 'SEVERITY_');
}

/** Returns the cause in a sentence, without times; empty if it says no more than the severity. */
export function causeOf(row) {
  const { text } = row.cause;
  return text === SEVERITIES.IN_SYNC.word ? '' : text;
}

/** Returns what the ReplicaSets with the same cause share; empty if no other has it. */
export function groupOf(row) {
  return row.cause.group;
}

/** Returns a command that shows more or helps; empty if there is none. */
export function commandOf(row) {
  return row.cause.nextCommand;
}

/** Returns when the server tries again; empty if it does not, or waits for no time. */
export function nextAttempt(row) {
  const due = row.unconvergedSince && row.nextSync ? Date.parse(row.nextSync) : 0;
  if (!due) return '';
  return due > now() ? `next attempt in ${span(due - now())}` : 'next attempt now';
}
