// What happened, on one axis: changes that were seen, decisions, operations, and what became of them.

import { h, setText } from './dom.js';
import { clock, count, now, word } from './format.js';

const LANES = { change: ['Change', '◇'], decision: ['Decision', '◆'], operation: ['Operation', '▶'], outcome: ['Outcome', '✓'] };
/** What an action is called that is decided, and its operations when they are done. */
const ACTIONS = { create: ['create', 'create'], delete: ['delete', 'delete'], claim: ['adopt or release', 'adoption or release', 'adoptions and releases'], status: ['write the status', 'write of the status', 'writes of the status'] };
/** Of entries of one time, which comes first. */
const RANKS = ['scaled', 'decided', 'answered'];
/** What is kept; older entries leave the page. */
const ENTRIES_MAX = 200;
const NAMES = 4;

/** Returns the part of a time that is less than a second, in nanoseconds. */
function nanos(time) {
  return Number((/\.(\d+)/.exec(time)?.[1] ?? '').padEnd(9, '0'));
}

/** Returns the panel. */
export function makeTimeline() {
  const seen = new Set();
  /** What the server tells of outcomes, by the time of the first: it tells again where more come to the same. */
  const ends = new Map();
  /** Pods that decisions named, so that what becomes of them is an outcome and not a change that came by itself. */
  const named = new Map();
  let known = null;

  const list = h('ol', { class: 'timeline', id: 'timeline', tabindex: 0, 'aria-labelledby': 'history-title' });
  const empty = h('p', { class: 'dim' }, 'Nothing has happened since the agent connected.');
  const legend = h('p', { class: 'legend' }, Object.entries(LANES).map(([lane, [text, mark]]) => h('span', {}, h('span', { class: `mark ${lane}`, 'aria-hidden': 'true' }, mark), ` ${text}`)));
  const element = h('section', { class: 'panel history', 'aria-labelledby': 'history-title' }, h('h2', { id: 'history-title' }, 'Timeline'), legend, empty, list);

  function add(lane, time, text, detail = '') {
    empty.hidden = true;
    const [title, mark] = LANES[lane];
    const entry = h('li', { class: lane, 'data-time': time }, h('time', { datetime: new Date(time).toISOString() }, clock(time)), h('span', { class: `mark ${lane}`, 'aria-hidden': 'true' }, mark),
      h('span', { class: 'text' }, h('span', { class: 'lane' }, `${title}: `), text, detail ? h('span', { class: 'dim' }, ` ${detail}`) : null));
    // Newest first. Among those of one time the later one is above.
    let before = list.firstElementChild;
    while (before && Number(before.dataset.time) > time) before = before.nextElementSibling;
    list.insertBefore(entry, before);
    while (list.children.length > ENTRIES_MAX) list.lastElementChild.remove();
    return entry;
  }

  function names(targets, total) {
    const first = targets.slice(0, NAMES).map((target) => target.name).join(', ');
    return total > NAMES ? `${first} and ${total - NAMES} more` : first;
  }

  function record(decision) {
    const id = `${decision.time} ${decision.batchId}`;
    if (seen.has(id)) return;
    seen.add(id);
    const time = Date.parse(decision.time);
    const [why] = decision.reasons;
    const reason = why ? `${word(why.rule, 'RULE_')}: ${why.detail}` : '';
    if (decision.action === 'status') {
      add('decision', time, 'write the status', reason);
      return;
    }
    for (const target of decision.targets ?? []) named.set(target.name, decision.action);
    const [verb] = ACTIONS[decision.action];
    add('decision', time, `${verb} ${count(decision.operations, 'pod')}`, reason);
    if (decision.targets) add('operation', time, `${verb} ${names(decision.targets, decision.operations)}`);
  }

  function scaled({ time, scaled: { from, to } }) {
    if (seen.has(`scaled ${time}`)) return;
    seen.add(`scaled ${time}`);
    add('change', Date.parse(time), from == null ? `created, wanted ${to}` : `wanted ${from} → ${to}`);
  }

  function answered({ time, answered: end }) {
    const shown = ends.get(time);
    if (shown?.last === end.last) return;
    shown?.entry.remove();
    const total = end.done + end.failed + end.notStarted;
    const [, one, many] = ACTIONS[end.action];
    const parts = [`${end.done} of ${count(total, one, many)} done`];
    if (end.failed > 0) parts.push(`${end.failed} failed (${word(end.class, 'FAILURE_CLASS_')})`);
    if (end.notStarted > 0) parts.push(`${end.notStarted} not started`);
    if (end.times > 1) parts.push(`${end.times} times since ${clock(Date.parse(time))}`);
    ends.set(time, { last: end.last, entry: add('outcome', Date.parse(end.last), parts.join(', '), end.message) });
  }

  /** Adds what the server remembers, in order. A decision that it remembers whole names the pods. */
  function remember({ decisions, timeline }) {
    const whole = decisions.map((decision) => ({ time: decision.time, rank: 1, add: () => record(decision) }));
    const short = timeline.map((entry) => {
      const rank = RANKS.findIndex((kind) => entry[kind]);
      const { reason, ...decided } = entry.decided ?? {};
      const add = [() => scaled(entry), () => record({ ...decided, time: entry.time, reasons: reason ? [reason] : [] }), () => answered(entry)][rank];
      return { time: entry.answered?.last ?? entry.time, rank, add };
    });
    const all = [...whole, ...short].map((entry) => ({ ...entry, at: Date.parse(entry.time), within: nanos(entry.time) }));
    for (const entry of all.sort((a, b) => a.at - b.at || a.within - b.within || a.rank - b.rank)) entry.add?.();
  }

  function compare(before, after, time) {
    const changes = [];
    if (before.active !== after.active) changes.push(`there ${before.active} → ${after.active}`);
    if (before.ready !== after.ready) changes.push(`ready ${before.ready} → ${after.ready}`);
    if (changes.length > 0) add('change', time, changes.join(', '));
    if (before.failure && !after.failure) add('change', time, 'the cluster takes writes again');
  }

  function podsChanged(before, after, time) {
    const told = { outcome: [], change: [] };
    const tell = (name, action, text) => told[named.get(name) === action ? 'outcome' : 'change'].push(text);
    for (const [name, pod] of after) {
      const old = before.get(name);
      if (!old) tell(name, 'create', `${name} is there${pod.node ? ` on ${pod.node}` : ''}`);
      else if (pod.terminating && !old.terminating) tell(name, 'delete', `${name} is terminating`);
      else if (pod.active && pod.ready !== old.ready) told.change.push(`${name} is ${pod.ready ? 'ready' : 'not ready'}`);
    }
    for (const name of before.keys()) if (!after.has(name)) tell(name, 'delete', `${name} is gone`);
    for (const [lane, texts] of Object.entries(told)) {
      if (texts.length === 0) continue;
      const more = texts.length - NAMES;
      add(lane, time, texts.slice(0, NAMES).join(', ') + (more > 0 ? ` and ${more} more` : ''));
    }
  }

  return {
    element,
    change(text) {
      add('change', now(), text);
    },
    standing(before, after) {
      remember(after);
      if (before) compare(before.summary, after.summary, now());
    },
    decision({ decision, missed }) {
      if (Number(missed) > 0) add('decision', now(), `${count(Number(missed), 'decision')} not shown`, 'they came faster than this page read them');
      if (decision) record(decision);
    },
    pods(found) {
      if (!found) return;
      const pods = new Map(found.pods.map((pod) => [pod.name, pod]));
      if (known) podsChanged(known, pods, now());
      known = pods;
      setText(empty, 'Nothing has happened since the agent connected.');
    },
  };
}
