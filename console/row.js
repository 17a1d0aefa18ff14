// A row of the board: one ReplicaSet, or several with the same cause.

import { barText, drawBar, makeBar } from './bar.js';
import { SEVERITIES, commandOf, fillBadge, makeBadge, watchedIn } from './cause.js';
import { makeCommand } from './copy.js';
import { h, setAttribute, setText } from './dom.js';
import { age, count, fullTime, now, shorten } from './format.js';

/** Where a row in sync has no room for its place. */
const narrow = window.matchMedia('(max-width: 820px)');

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
  const next = makeCommand();
  const row = makeCells('group', h('button', { type: 'button', onclick: toggle }, h('span', { class: 'arrow', 'aria-hidden': 'true' }), name));
  row.retry.replaceWith(next);
  return Object.assign(row, { name, next });
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
  // A row in sync has its name and its place in one line.
  const beside = entry.severity === 'IN_SYNC' && !narrow.matches ? Math.min(place.length, Math.floor(room / 2)) + 1 : 0;
  setText(element.name, shorten(name, room - beside));
  setText(element.place, shorten(place, beside > 0 ? beside - 1 : room));
  setAttribute(element, 'data-member', entry.isMember);
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
  element.next.show(commandOf(row));
  const fields = ['replicas', 'active', 'ready', 'terminating', 'operationsInFlight'];
  const sums = Object.fromEntries(fields.map((field) => [field, members.reduce((sum, entry) => sum + entry.row[field], 0)]));
  fillCells(element, severity, sums, watchedIn(row), { cause: group, since: Math.min(...members.map((entry) => entry.since)) });
}
