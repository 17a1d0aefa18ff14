// The timeline of a ReplicaSet: observed changes, decisions, operations and outcomes.

import { watchedIn } from './cause.js';
import { h, reconcile, setAttribute, setText } from './dom.js';
import { age, clock, count, fullTime, now, word } from './format.js';

const LANES = { change: ['Change', '◇'], decision: ['Decision', '◆'], operation: ['Operation', '▶'], outcome: ['Outcome', '✓'], partial: ['Outcome', '!'], failed: ['Outcome', '✕'], watched: ['Outcome', '◌'] };
const LEGEND = [['change', 'Change'], ['decision', 'Decision'], ['operation', 'Operation'], ['outcome', 'Done'], ['partial', 'Partly done'], ['failed', 'Nothing done'], ['watched', 'Not executed']];
/** The labels of each action: as a decision, and as a completed operation. */
const ACTIONS = { ACTION_CREATE: ['create', 'create'], ACTION_DELETE: ['delete', 'delete'], ACTION_CLAIM: ['adopt or release', 'adoption or release', 'adoptions and releases'], ACTION_WRITE_STATUS: ['write the status', 'write of the status', 'writes of the status'] };
/** The order of entries with the same time. */
const RANKS = ['scaled', 'decided', 'answered'];
/** The maximum number of entries; the oldest ones are dropped. */
const ENTRIES_MAX = 200;
/** The maximum number of decisions, outcomes and pods that the page recognizes; the server sends few of them again. */
const KNOWN_MAX = 10_000;
const NAMES = 4;

/** Returns the fraction of a second of a time, in nanoseconds. */
function nanos(time) {
  return Number((/\.(\d+)/.exec(time)?.[1] ?? '').padEnd(9, '0'));
}

function ago(time) {
  const passed = now() - time;
  return passed < 5000 ? 'just now' : `${age(passed)} ago`;
}

/**
 * Returns the entries, newest first, with repeated attempts, and successive status writes, folded into one. Attempts repeat while nothing changes
 * and nothing succeeds. Entries with the same `fold` are equal. Repeated attempts and observed changes do not separate status writes.
 */
export function folded(entries) {
  const lines = [];
  let open = new Map();
  let writes = null;
  for (const entry of entries) {
    if (entry.ready !== null) {
      if (writes) writes.writes.push(entry);
      else lines.push((writes = { ...entry, writes: [entry] }));
      continue;
    }
    if (!entry.fold && (entry.lane !== 'change' || entry.scaled)) writes = null;
    const line = entry.fold && open.get(entry.fold);
    if (line) {
      line.times += entry.times;
      line.first = entry.first;
      continue;
    }
    const made = { ...entry };
    lines.push(made);
    if (entry.fold) open.set(entry.fold, made);
    else open = new Map();
  }
  return lines.map(written);
}

/** Describes several status writes as one line, whose key does not change when another write follows. */
function written(line) {
  const { writes } = line;
  if (!writes || writes.length === 1) return line;
  const [newest, oldest] = [writes[0], writes.at(-1)];
  const ready = newest.ready === oldest.ready ? newest.ready : `${oldest.ready} → ${newest.ready}`;
  return { ...line, key: `writes ${oldest.key}`, text: `${count(writes.length, 'status write')}, ready ${ready}`, detail: '' };
}

/** Drops the oldest keys beyond the maximum. A page can stay open for weeks. */
function forget(recognized) {
  for (const key of recognized.keys()) {
    if (recognized.size <= KNOWN_MAX) return;
    recognized.delete(key);
  }
}

/** Creates the panel, with `travel` above the entries. */
export function makeTimeline(travel) {
  /** The time that the page shows. Later entries are pale. */
  let until = Infinity;
  let entries = [];
  let number = 0;
  const seen = new Set();
  /** Outcomes by the time of the first one. The server sends an entry again when more outcomes join it. */
  const ends = new Map();
  /** Pods that decisions named. Their changes are outcomes, not foreign changes. */
  const named = new Map();
  let known = null;
  /** The mode of the agent if it executes no decisions. */
  let mode = '';

  const list = h('ol', { class: 'timeline', id: 'timeline', tabindex: 0, 'aria-labelledby': 'history-title' });
  const empty = h('p', { class: 'dim' }, 'Nothing has happened since the agent connected.');
  const legend = h('p', { class: 'legend' }, LEGEND.map(([lane, text]) => h('span', {}, h('span', { class: `mark ${lane}`, 'aria-hidden': 'true' }, LANES[lane][1]), ` ${text}`)));
  const element = h('section', { class: 'panel history', 'aria-labelledby': 'history-title' }, h('div', { class: 'panel-head' }, h('h2', { id: 'history-title' }, 'Timeline'), legend), travel.element, empty, list);

  /** Adds an entry. Entries with the same `fold` are equal; an entry without it is never folded. */
  function add(lane, time, text, { detail = '', fold = '', times = 1, first = time, scaled = null, ready = null } = {}) {
    number += 1;
    const entry = { key: number, lane, time, text, detail, fold, times, first, scaled, ready };
    // Newest first. Of entries with the same time, the later one is above.
    const at = entries.findIndex((other) => other.time <= time);
    entries.splice(at < 0 ? entries.length : at, 0, entry);
    entries = entries.slice(0, ENTRIES_MAX);
    return entry;
  }

  function draw() {
    empty.hidden = entries.length > 0;
    travel.entries(entries);
    reconcile(list, folded(entries), (line) => String(line.key), makeLine, drawLine);
  }

  function makeLine(line) {
    const [title, mark] = LANES[line.lane];
    const time = h('time', { datetime: new Date(line.time).toISOString(), title: fullTime(line.time) });
    const detail = h('span', { class: 'dim' });
    const times = h('span', {});
    const text = h('span', {}, line.text);
    const words = [h('span', { class: 'lane' }, `${title}: `), text, times, ' ', detail];
    const each = line.writes?.length > 1 ? h('ol', { class: 'writes' }) : null;
    const body = each ? h('details', { class: 'text' }, h('summary', {}, words), each) : h('span', { class: 'text' }, words);
    return Object.assign(h('li', { class: line.lane }, time, h('span', { class: `mark ${line.lane}`, 'aria-hidden': 'true' }, mark), body), { time, text, detail, times, each });
  }

  function drawLine(element, line) {
    setText(element.time, ago(line.time));
    setAttribute(element, 'data-later', line.time > until);
    setText(element.times, line.times > 1 ? `, ${line.times.toLocaleString('en')} times since ${clock(line.first)}` : '');
    setAttribute(element.times, 'title', line.times > 1 ? fullTime(line.first) : '');
    setText(element.detail, line.detail);
    if (!element.each) return;
    setText(element.text, line.text);
    reconcile(element.each, line.writes, ({ key }) => String(key), ({ time, detail }) => h('li', {}, `${clock(time)} ${detail}`), () => {});
  }

  function names(targets, total) {
    const first = targets.slice(0, NAMES).map((target) => target.name).join(', ');
    return total > NAMES ? `${first} and ${total - NAMES} more` : first;
  }

  function record(decision) {
    const id = `${decision.decideTime} ${decision.batchId}`;
    if (seen.has(id)) return;
    seen.add(id);
    const time = Date.parse(decision.decideTime);
    const [why] = decision.reasons;
    const detail = why ? `${word(why.rule, 'RULE_')}: ${why.detail}` : '';
    if (decision.action === 'ACTION_WRITE_STATUS') {
      // The detail names the numbers, such as `8 replicas, 7 ready, 7 available`.
      add('decision', time, 'write the status', { detail, ready: /([\d,]+) ready/.exec(detail)?.[1] ?? '?' });
      return;
    }
    for (const target of mode ? [] : decision.targets ?? []) named.set(target.name, decision.action);
    const [verb] = ACTIONS[decision.action];
    const fold = `${decision.action} ${decision.operations}`;
    add('decision', time, `${verb} ${count(decision.operations, 'pod')}`, { detail, fold: `decision ${fold} ${why?.rule}` });
    if (decision.targets) add('operation', time, `${mode && 'would '}${verb} ${names(decision.targets, decision.operations)}`, { fold: `operation ${fold}` });
  }

  function scaled({ eventTime: time, scaled: { previous, desired } }) {
    if (seen.has(`scaled ${time}`)) return;
    seen.add(`scaled ${time}`);
    add('change', Date.parse(time), previous == null ? `created, desired ${desired}` : `desired ${previous} → ${desired}`, { scaled: { previous, desired } });
  }

  function answered({ eventTime: time, answered: end }) {
    const shown = ends.get(time);
    if (shown?.last === end.lastTime) return;
    if (shown) entries = entries.filter((entry) => entry !== shown.entry);
    const total = end.done + end.failed + end.notStarted;
    const [, one, many] = ACTIONS[end.action];
    const parts = [`${end.done} of ${count(total, one, many)} done`];
    if (end.failed > 0) parts.push(`${end.failed} failed (${word(end.failureClass, 'FAILURE_CLASS_')})`);
    if (end.notStarted > 0) parts.push(`${end.notStarted} not started`);
    const isWatched = mode !== '' && end.notStarted === total;
    if (isWatched) parts.splice(0, parts.length, `not executed (${mode}): ${count(total, one, many)}`);
    const lane = isWatched ? 'watched' : end.done === total ? 'outcome' : end.done > 0 ? 'partial' : 'failed';
    const fold = ['failed', 'watched'].includes(lane) ? `failed ${end.action} ${parts} ${end.failureClass}` : '';
    ends.set(time, { last: end.lastTime, entry: add(lane, Date.parse(end.lastTime), parts.join(', '), { detail: isWatched ? '' : end.message, fold, times: Math.max(1, end.times), first: Date.parse(time) }) });
  }

  /** Adds the server's history, in order. A decision with all details names its pods. */
  function remember({ decisions, timeline }) {
    const whole = decisions.map((decision) => ({ time: decision.decideTime, rank: 1, add: () => record(decision) }));
    const short = timeline.map((entry) => {
      const rank = RANKS.findIndex((kind) => entry[kind]);
      const { reason, ...decided } = entry.decided ?? {};
      const add = [() => scaled(entry), () => record({ ...decided, decideTime: entry.eventTime, reasons: reason ? [reason] : [] }), () => answered(entry)][rank];
      return { time: entry.answered?.lastTime ?? entry.eventTime, rank, add };
    });
    const all = [...whole, ...short].map((entry) => ({ ...entry, at: Date.parse(entry.time), within: nanos(entry.time) }));
    for (const entry of all.sort((a, b) => a.at - b.at || a.within - b.within || a.rank - b.rank)) entry.add?.();
    for (const recognized of [seen, ends, named]) forget(recognized);
  }

  function compare(before, after, time) {
    const changes = [];
    if (before.active !== after.active) changes.push(`current ${before.active} → ${after.active}`);
    if (before.ready !== after.ready) changes.push(`ready ${before.ready} → ${after.ready}`);
    if (changes.length > 0) add('change', time, changes.join(', '));
    if (before.failure && !after.failure) add('change', time, 'the API server accepts writes again');
  }

  function podsChanged(before, after, time) {
    const told = { outcome: [], change: [] };
    const tell = (name, action, text) => told[named.get(name) === action ? 'outcome' : 'change'].push(text);
    for (const [name, pod] of after) {
      const old = before.get(name);
      if (!old) tell(name, 'ACTION_CREATE', `${name} created${pod.node ? ` on ${pod.node}` : ''}`);
      else if (pod.terminating && !old.terminating) tell(name, 'ACTION_DELETE', `${name} terminating`);
      else if (pod.active && pod.ready !== old.ready) told.change.push(`${name} ${pod.ready ? 'ready' : 'not ready'}`);
    }
    for (const name of before.keys()) if (!after.has(name)) tell(name, 'ACTION_DELETE', `${name} gone`);
    for (const [lane, texts] of Object.entries(told)) {
      if (texts.length === 0) continue;
      const more = texts.length - NAMES;
      add(lane, time, texts.slice(0, NAMES).join(', ') + (more > 0 ? ` and ${more} more` : ''));
    }
  }

  return {
    element,
    draw,
    /** Shows the timeline as of a time, or as of now. */
    travel(time) {
      until = time ?? Infinity;
      draw();
    },
    change(text) {
      add('change', now(), text);
      draw();
    },
    standing(before, after) {
      mode = watchedIn(after.summary);
      legend.lastChild.hidden = mode === '';
      remember(after);
      if (before) compare(before.summary, after.summary, now());
      draw();
    },
    pods(found) {
      if (!found) return;
      const pods = new Map(found.pods.map((pod) => [pod.name, pod]));
      if (known) podsChanged(known, pods, now());
      known = pods;
      draw();
    },
  };
}
