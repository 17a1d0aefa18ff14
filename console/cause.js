// How urgently a ReplicaSet needs attention, and why, in the words of the server.

import { h, setAttribute } from './dom.js';
import { now, span, word } from './format.js';

/** From most to least urgent. Each has a mark, because many people cannot tell colors apart. */
export const SEVERITIES = {
  BLOCKED: { word: 'Blocked', mark: '■' },
  SLOW: { word: 'Slow', mark: '▲' },
  WORKING: { word: 'Working', mark: '◔' },
  IN_SYNC: { word: 'In sync', mark: '✓' },
};

/** Modes of agents that execute no decisions. */
const WATCHED = { MODE_SHADOW: 'shadow', MODE_DRY_RUN: 'dry-run', MODE_ADVISE: 'advise' };

/** Returns the mode of a ReplicaSet's agent if it executes no decisions, and else an empty text. */
export function watchedIn(row) {
  return WATCHED[row.mode] ?? '';
}

export function makeBadge() {
  return h('span', { class: 'badge', hidden: true }, 'watched');
}

/** Shows a badge for a mode, and hides it for an empty text. */
export function fillBadge(badge, mode) {
  badge.hidden = mode === '';
  setAttribute(badge, 'title', mode && `The agent is in ${mode} mode: it executes no decisions`);
}

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

/** Returns the time of the next retry; empty if nothing is retried, or the server waits for something other than a time. */
export function nextAttempt(row) {
  const due = row.divergeTime && row.nextSyncTime && !watchedIn(row) ? Date.parse(row.nextSyncTime) : 0;
  if (!due) return '';
  return due > now() ? `next attempt in ${span(due - now())}` : 'next attempt now';
}
