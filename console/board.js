// The board: all ReplicaSets, the longest unconverged first. Of thousands of rows only those in sight are in the document.

import { barText, drawBar, makeBar } from './bar.js';
import { h, setAttribute, setText } from './dom.js';
import { STATES, age, count, isBackingOff, learnTime, limitOf, now, sentence, stateOf } from './format.js';
import { hashOf, replaceQuery } from './route.js';

/** Rows beyond those in sight, above and below. */
const BEYOND = 6;

const FILTERS = [
  ['all', 'All', () => true],
  ['unconverged', 'Unconverged', (row) => Boolean(row.unconvergedSince)],
  ['acting', 'Acting', (row) => ['ACTING', 'QUEUED'].includes(stateOf(row))],
  ['backoff', 'Backing off', isBackingOff],
  ['throttled', 'Throttled', (row) => Boolean(limitOf(row))],
  ['quarantined', 'Quarantined', (row) => stateOf(row) === 'QUARANTINED'],
];

const keyOf = (row) => `${row.replicaSet.uid} ${row.cluster}`;
const nameOf = (row) => `${row.cluster}/${row.replicaSet.namespace}/${row.replicaSet.name}`;

/** Shows the board in `main`. */
export function showBoard(main, query) {
  let rows = new Map();
  /** What a stream that has just begun has said; it takes the place of `rows` once it is whole. */
  let fresh = new Map();
  let listed = [];
  let standing = null;
  let scheduled = false;
  let stale = true;
  const chosen = { filter: FILTERS.some(([id]) => id === query.show) ? query.show : 'all', search: query.q || '' };
  const shown = new Map();
  let current = null;

  const search = h('input', { id: 'search', type: 'search', placeholder: 'namespace/name', autocomplete: 'off', spellcheck: 'false', value: chosen.search, oninput: () => choose({ search: search.value }) });
  const counts = new Map(FILTERS.map(([id]) => [id, h('span', { class: 'count' })]));
  const filters = h('fieldset', { class: 'filters' }, h('legend', { class: 'away' }, 'Show'), FILTERS.map(([id, label]) => h('label', {}, h('input', { type: 'radio', name: 'show', value: id, checked: id === chosen.filter, onchange: () => choose({ filter: id }) }), h('span', {}, label, ' ', counts.get(id)))));
  const summary = h('p', { class: 'summary', id: 'summary' });
  const space = h('div', { class: 'space', role: 'rowgroup' });
  const scroller = h('div', { class: 'rows', role: 'presentation' }, space);
  const headings = ['ReplicaSet', 'Pods', 'State', 'Unconverged', 'Waits for'];
  const table = h('div', { class: 'table', role: 'table', 'aria-label': 'ReplicaSets, the longest unconverged first' },
    h('div', { class: 'head', role: 'rowgroup' }, h('div', { class: 'row', role: 'row' }, headings.map((text) => h('span', { role: 'columnheader' }, text)))), scroller);
  const empty = h('div', { class: 'empty', id: 'empty' });
  main.replaceChildren(h('section', { class: 'board' }, h('h1', { class: 'away' }, 'Board'),
    h('div', { class: 'tools' }, h('label', { class: 'search', for: 'search' }, h('span', { class: 'away' }, 'Search'), search), filters), summary, table, empty));

  scroller.addEventListener('scroll', schedule, { passive: true });
  scroller.addEventListener('keydown', move);
  const sized = new ResizeObserver(schedule);
  sized.observe(scroller);
  const second = setInterval(schedule, 1000);

  function choose(choice) {
    Object.assign(chosen, choice);
    replaceQuery({ q: chosen.search, show: chosen.filter === 'all' ? '' : chosen.filter });
    scroller.scrollTop = 0;
    stale = true;
    schedule();
  }

  function schedule() {
    if (scheduled) return;
    scheduled = true;
    requestAnimationFrame(() => {
      scheduled = false;
      if (stale) select();
      draw();
    });
  }

  function select() {
    stale = false;
    const words = chosen.search.toLowerCase().split(/\s+/).filter(Boolean);
    const all = [...rows.values()].filter((row) => words.every((part) => row.search.includes(part)));
    for (const [id, , keeps] of FILTERS) setText(counts.get(id), all.filter((entry) => keeps(entry.row)).length.toLocaleString('en'));
    const [, , keeps] = FILTERS.find(([id]) => id === chosen.filter);
    listed = all.filter((entry) => keeps(entry.row));
    listed.sort((a, b) => a.since - b.since || (a.name < b.name ? -1 : 1));
    const several = new Set([...rows.values()].map((entry) => entry.row.cluster)).size > 1;
    setAttribute(table, 'data-clusters', several ? 'several' : 'one');
    setAttribute(table, 'aria-rowcount', listed.length + 1);
    const unconverged = [...rows.values()].filter((entry) => entry.row.unconvergedSince).length;
    setText(summary, rows.size === 0 ? '' : `${count(rows.size, 'ReplicaSet')}, ${unconverged === 0 ? 'all converged' : `${unconverged.toLocaleString('en')} unconverged`}`);
    explain();
  }

  function explain() {
    table.hidden = listed.length === 0;
    empty.hidden = listed.length > 0;
    if (listed.length > 0) return;
    const say = (title, ...text) => {
      if (empty.dataset.said === title) return;
      empty.dataset.said = title;
      empty.replaceChildren(h('h2', {}, title), h('p', {}, ...text));
    };
    if (!standing) say('Looking…', 'The first rows are on their way.');
    else if (rows.size > 0) say('Nothing found', 'No ReplicaSet matches what you search and show. ', h('a', { href: '#/' }, 'Show all'));
    else if (standing.sessions === 0) say('No agent is connected', 'ReplicaSets appear here as soon as an agent connects: ', h('code', {}, 'decree-agent --server …'));
    else if (standing.synced < standing.sessions) say('An agent is listing its cluster', 'Its ReplicaSets appear as they come.');
    else say('No ReplicaSets', 'The connected clusters have none.');
  }

  function draw() {
    if (listed.length === 0) return;
    const height = parseFloat(getComputedStyle(scroller).getPropertyValue('--row')) || 52;
    const first = Math.max(0, Math.floor(scroller.scrollTop / height) - BEYOND);
    const last = Math.min(listed.length, Math.ceil((scroller.scrollTop + scroller.clientHeight) / height) + BEYOND);
    space.style.height = `${listed.length * height}px`;
    const wanted = new Map();
    for (let at = first; at < last; at += 1) wanted.set(listed[at].key, at);
    // The row that has the focus stays in the document wherever it goes.
    const held = document.activeElement?.closest?.('[data-key]')?.dataset.key;
    if (held && shown.has(held) && !wanted.has(held)) {
      const at = listed.findIndex((entry) => entry.key === held);
      if (at >= 0) wanted.set(held, at);
    }
    for (const [key, element] of shown) {
      if (!wanted.has(key)) {
        element.remove();
        shown.delete(key);
      }
    }
    if (!current || !listed.some((entry) => entry.key === current)) current = listed[first]?.key ?? null;
    for (const [key, at] of wanted) place(key, at, height);
  }

  function place(key, at, height) {
    const entry = listed[at];
    let element = shown.get(key);
    if (!element) {
      element = make(key);
      shown.set(key, element);
      space.append(element);
    }
    element.style.transform = `translateY(${at * height}px)`;
    setAttribute(element, 'aria-rowindex', at + 2);
    setAttribute(element, 'data-at', at);
    fill(element, entry);
    setAttribute(element.link, 'tabindex', key === current ? 0 : -1);
  }

  function move(event) {
    const row = event.target.closest('[data-at]');
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity }[event.key];
    if (!row || step === undefined) return;
    event.preventDefault();
    const at = Math.min(listed.length - 1, Math.max(0, Number(row.dataset.at) + step));
    current = listed[at].key;
    const height = parseFloat(getComputedStyle(scroller).getPropertyValue('--row')) || 52;
    const top = at * height;
    if (top < scroller.scrollTop) scroller.scrollTop = top;
    else if (top + height > scroller.scrollTop + scroller.clientHeight) scroller.scrollTop = top + height - scroller.clientHeight;
    draw();
    shown.get(current)?.link.focus({ preventScroll: true });
  }

  function take(list) {
    for (const row of list) {
      if (!row) continue;
      const since = row.unconvergedSince ? Date.parse(row.unconvergedSince) : Infinity;
      const name = nameOf(row);
      fresh.set(keyOf(row), { key: keyOf(row), row, since: since === Infinity ? Number.MAX_SAFE_INTEGER : since, name, search: name.toLowerCase() });
    }
  }

  return {
    stream: { view: 'board' },
    begin() {
      fresh = new Map();
    },
    event(name, data) {
      if (name === 'rows') take(data);
      if (name !== 'board') return;
      learnTime(data.seconds);
      standing = data;
      for (const key of data.gone) fresh.delete(key);
      // The same map from the first whole state on: later events change it in place.
      rows = fresh;
      stale = true;
      schedule();
    },
    focusSearch() {
      search.focus();
    },
    close() {
      clearInterval(second);
      sized.disconnect();
    },
  };
}

/** Returns the element of a row, with its parts as properties. */
function make(key) {
  const cell = (name, ...children) => h('span', { class: name, role: 'cell' }, ...children);
  const place = h('span', { class: 'place' });
  const name = h('span', { class: 'name' });
  const link = h('a', {}, place, name);
  const bar = makeBar();
  const numbers = h('span', { class: 'numbers' });
  const mark = h('span', { class: 'mark', 'aria-hidden': 'true' });
  const state = h('span', {});
  const since = h('span', {});
  const waits = h('span', {});
  const element = h('div', { class: 'row', role: 'row', 'data-key': key }, cell('who', link), cell('pods', bar, numbers), cell('state', mark, ' ', state), cell('since', since), cell('waits', waits));
  return Object.assign(element, { link, place, name, bar, numbers, mark, state, since, waits });
}

function fill(element, entry) {
  const { row } = entry;
  const { namespace, name } = row.replicaSet;
  const state = stateOf(row);
  setText(element.place, `${row.cluster} / ${namespace} / `);
  setText(element.name, name);
  setAttribute(element.link, 'href', hashOf(['replicasets', row.cluster, namespace, name]));
  drawBar(element.bar, row);
  setText(element.numbers, barText(row));
  setAttribute(element, 'data-state', state);
  setText(element.mark, STATES[state]?.mark ?? '');
  setText(element.state, STATES[state]?.word ?? state);
  setText(element.since, row.unconvergedSince ? age(now() - entry.since) : '—');
  setText(element.waits, sentence(row));
  setAttribute(element.waits, 'title', sentence(row));
}
