// A row of the board: one ReplicaSet, or several with the same cause.

import { barText, drawBar, makeBar } from './bar.js';
import { SEVERITIES, fillBadge, makeBadge, watchedIn } from './cause.js';
import { h, setAttribute, setText } from './dom.js';
import { age, count, fullTime, now, shorten } from './format.js';

const cell = (name, ...children) => h('span', { class: name, role: 'cell' }, ...children);

function makeCells(kind, link) {
  const bar = makeBar();
  const numbers = h('span', { class: 'numbers' });
  const mark = h('span', { class: 'mark', 'aria-hidden': 'true' });
  const state = h('span', {});
  const badge = makeBadge();
  const cause = h('span', {});
  const retry = h('span', { class: 'dim' });
  const since = h('time', {});
  const element = h('div', { class: `row ${kind}`, role: 'row' }, cell('state', mark, ' ', state), cell('who', link), cell('pods', bar, numbers), cell('cause', badge, ' ', cause, ' ', retry), cell('since', since));
  return Object.assign(element, { link, bar, numbers, mark, state, badge, cause, retry, since });
}

/** Creates the element of a ReplicaSet, with its parts as properties. */
export function makeRow() {
  const name = h('span', { class: 'name' });
  const place = h('span', { class: 'place' });
  return Object.assign(makeCells('one', h('a', {}, name, place)), { name, place });
}

export function makeGroup(toggle) {
  const name = h('strong', {});
  return Object.assign(makeCells('group', h('button', { type: 'button', onclick: toggle }, h('span', { class: 'arrow', 'aria-hidden': 'true' }), name)), { name });
}

function fillCells(element, severity, counts, mode, { cause, since }) {
  setAttribute(element, 'data-severity', severity);
  setText(element.mark, SEVERITIES[severity].mark);
  setText(element.state, SEVERITIES[severity].word);
  drawBar(element.bar, counts);
  setText(element.numbers, barText(counts));
  fillBadge(element.badge, mode);
  setText(element.cause, cause);
  const isOpen = since < Number.MAX_SAFE_INTEGER;
  setText(element.since, isOpen ? age(now() - since) : '—');
  setAttribute(element.since, 'title', isOpen ? `Unconverged since ${fullTime(since)}` : 'Converged');
}

/** Updates a row; `room` is the number of letters of a name that fit. */
export function fillRow(element, entry, address, room, retry) {
  const { row } = entry;
  const { namespace, name } = row.replicaSet;
  const place = `${row.cluster} / ${namespace}`;
  setText(element.name, shorten(name, room));
  setText(element.place, shorten(place, room));
  setAttribute(element.link, 'href', address);
  setAttribute(element.link, 'title', `${place} / ${name}`);
  fillCells(element, entry.severity, row, watchedIn(row), entry);
  setText(element.retry, retry && `· ${retry}`);
}

export function fillGroup(element, { members }, isOpen) {
  const [{ row, severity, group }] = members;
  const namespaces = new Set(members.map((entry) => entry.row.replicaSet.namespace));
  const where = namespaces.size === 1 ? ` in ${row.replicaSet.namespace}` : ` in ${count(namespaces.size, 'namespace')}`;
  setText(element.name, `${count(members.length, 'ReplicaSet')}${where}`);
  setAttribute(element.link, 'aria-expanded', isOpen);
  const fields = ['replicas', 'active', 'ready', 'terminating', 'operationsInFlight'];
  const sums = Object.fromEntries(fields.map((field) => [field, members.reduce((sum, entry) => sum + entry.row[field], 0)]));
  fillCells(element, severity, sums, watchedIn(row), { cause: group, since: Math.min(...members.map((entry) => entry.since)) });
}
