// How far another controller agrees with the decisions of the server, in shadow-mode sessions, as a report to pass on.

import { clusterIn } from './board.js';
import { makeCommand, makeCopy } from './copy.js';
import { h, reconcile, setAttribute, setText } from './dom.js';
import { age, count, fullTime, late, now, word } from './format.js';
import { hashOf, replaceQuery } from './route.js';

const HEADINGS = ['Time', 'ReplicaSet', 'Subject', 'Decided here', 'Done there', 'Why'];

const subjectOf = (one) => word(one.subject, 'SUBJECT_').toLowerCase();
const isUnexplained = (one) => one.departure === 'DEPARTURE_UNSPECIFIED';
const pathOf = ({ replicaSet }) => `${replicaSet.namespace}/${replicaSet.name}`;
const why = (one) => `${isUnexplained(one) ? 'Unexplained' : 'Explained'}: ${one.why}`;
/** Text of a cluster as a cell of a Markdown table, with all markup escaped. */
const cell = (text) => String(text).replace(/\s+/g, ' ').replace(/[\\`*_[\]<>|#!]/g, '\\$&');

/** Returns the share of comparisons without a difference, rounded down: it is 100 % only if all agree. */
function share({ compared, explained: some, unexplained }) {
  if (compared === 0) return '–';
  const hundredths = Math.floor((10_000 * (compared - some - unexplained)) / compared);
  return hundredths === 10_000 ? '100 %' : `${(hundredths / 100).toFixed(2)} %`;
}

/** Returns the counts of each subject, and the totals. */
function countsOf({ agreements }) {
  const subjects = agreements.map((one) => ({ subject: subjectOf(one), compared: Number(one.compared), explained: Number(one.explained), unexplained: Number(one.unexplained), notCompared: Number(one.notCompared) }));
  const sum = (field) => subjects.reduce((total, one) => total + one[field], 0);
  return [...subjects, { subject: 'all', compared: sum('compared'), explained: sum('explained'), unexplained: sum('unexplained'), notCompared: sum('notCompared') }];
}

/** Returns sentences about the sessions whose differences are old or missing. */
const lateness = ({ staleViews = [] }) => staleViews.map(late).join('').trim();

/** Returns the verdict on all comparisons, and the numbers behind it. */
function headline(answer, all) {
  const [compared, notCompared, unexplained] = [all.compared, all.notCompared, all.unexplained].map((number) => number.toLocaleString('en'));
  const differing = all.explained + all.unexplained;
  const long = answer.startTime ? `, for ${age(now() - Date.parse(answer.startTime))}` : '';
  const rest = `${notCompared} not compared. ${share(all)} agree, of ${count(Number(answer.replicaSets), 'ReplicaSet')}${long}. Pods that others deleted: ${answer.deletedByOthers}.`;
  if (all.compared === 0) return ['Nothing is compared yet', rest];
  if (differing === 0) return [`${all.compared === 1 ? 'The only decision agrees' : `All ${compared} decisions agree`}`, rest];
  return [`${differing.toLocaleString('en')} of ${count(all.compared, 'decision')} ${differing === 1 ? 'differs' : 'differ'}; ${all.unexplained === 0 ? 'nothing' : unexplained} ${all.unexplained > 1 ? 'are' : 'is'} unexplained`, rest];
}

function markdown(answer) {
  const counts = countsOf(answer);
  const all = counts.at(-1);
  const row = (...cells) => `| ${cells.map(cell).join(' | ')} |`;
  const lines = ['# Decree beside the controller of the cluster', '', `${headline(answer, all).join('. ')} ${lateness(answer)}`.trimEnd(), '', row('subject', 'compared', 'agree', 'explained', 'unexplained', 'not compared'), '| --- | ---: | ---: | ---: | ---: | ---: |',
    ...counts.map((one) => row(one.subject, one.compared, share(one), one.explained, one.unexplained, one.notCompared))];
  if (answer.differences.length > 0) {
    lines.push('', `## Differences: ${answer.differences.length}`, '', row(...HEADINGS), row(...HEADINGS.map(() => '---')));
    for (const one of answer.differences) lines.push(row(one.detectTime, pathOf(one), subjectOf(one), one.decided, one.done, why(one)));
  }
  return `${lines.join('\n')}\n`;
}

/** Returns differences as groups that are equal except for their ReplicaSets, times and numbers; the newest first. */
function grouped(differences) {
  const groups = new Map();
  for (const one of differences) {
    const key = [one.subject, one.departure, one.why, one.decided, one.done].join('|').replace(/\d+/g, 'N');
    if (!groups.has(key)) groups.set(key, { key, members: [] });
    groups.get(key).members.push(one);
  }
  return [...groups.values()];
}

/** Returns the text of a field of all members; where they differ, with N for the numbers. */
function common(members, field) {
  const [{ [field]: first }] = members;
  return members.every((one) => one[field] === first) ? first : first.replace(/\d+/g, 'N');
}

/** What the page showed last. */
let last = null;

export function showDifferences(main, query) {
  let known = last;
  let isFiltered = query.show === 'unexplained';
  const rate = h('p', { class: 'sentence', id: 'rate' });
  const numbers = h('p', { class: 'dim', id: 'numbers' });
  const stale = h('p', { class: 'dim', id: 'stale' });
  const subjects = h('tbody', {});
  const table = (label, headings, body) => h('div', { class: 'wide', tabindex: 0, role: 'region', 'aria-label': label }, h('table', {}, h('thead', {}, h('tr', {}, headings.map((text) => h('th', { scope: 'col' }, text)))), body));
  const agreement = table('Agreement by subject', ['Subject', 'Compared', 'Agree', 'Explained', 'Unexplained', 'Not compared'], subjects);
  const rows = h('tbody', { id: 'differences' });
  const list = table('Differences', HEADINGS, rows);
  const only = h('input', { type: 'checkbox', id: 'only', checked: isFiltered, onchange: () => filter(only.checked) });
  const copy = makeCopy('Copy as Markdown', () => markdown(known));
  const actions = h('div', { class: 'actions' }, copy.elements, h('button', { type: 'button', onclick: download }, 'Download as JSON'), h('label', {}, only, ' Only unexplained'));
  const empty = h('div', { class: 'empty', id: 'empty' }, h('h2', {}, 'Loading…'));
  for (const element of [agreement, list, actions]) element.hidden = true;
  main.replaceChildren(h('section', { class: 'page' }, h('h1', {}, 'Differences'), rate, numbers, stale, actions, list, agreement, empty));
  const second = setInterval(draw, 1000);
  draw();

  function filter(wanted) {
    isFiltered = wanted;
    replaceQuery({ show: wanted ? 'unexplained' : '' });
    draw();
  }

  function download() {
    const address = URL.createObjectURL(new Blob([JSON.stringify(known, null, 2)], { type: 'application/json' }));
    h('a', { href: address, download: 'decree-shadow.json' }).click();
    setTimeout(() => URL.revokeObjectURL(address), 1000);
  }

  function draw() {
    if (!known) return;
    const { differences, shadows, staleViews = [] } = known;
    const unexplained = differences.filter(isUnexplained);
    const shown = isFiltered ? unexplained : differences;
    const counts = countsOf(known);
    const all = counts.at(-1);
    agreement.hidden = shadows === 0 || all.compared === 0;
    actions.hidden = shadows === 0;
    list.hidden = shown.length === 0;
    empty.hidden = shown.length > 0;
    const [verdict, rest] = headline(known, all);
    setText(rate, agreement.hidden ? '' : verdict);
    setText(numbers, agreement.hidden ? '' : rest);
    setText(stale, lateness(known));
    subjects.replaceChildren(...counts.map((one) => h('tr', {}, [one.subject, one.compared.toLocaleString('en'), share(one), one.explained, one.unexplained, one.notCompared].map((text, at) => h(at === 0 ? 'th' : 'td', at === 0 ? { scope: 'row' } : { class: 'numbers' }, String(text))))));
    if (shadows === 0 && staleViews.some((view) => view.missing)) empty.replaceChildren(h('h2', {}, 'A session does not answer'), h('p', {}, 'Its differences appear when it does.'));
    else if (shadows === 0) empty.replaceChildren(h('h2', {}, 'No agent is in shadow mode'), h('p', {}, 'An agent in shadow mode changes nothing, and compares what another controller does with what the server decides:'), h('p', {}, makeCommand('decree up --cluster kubernetes')));
    else if (shown.length === 0) empty.replaceChildren(h('h2', {}, 'No differences'), h('p', {}, differences.length > 0 ? 'Each difference is explained.' : all.compared > 0 ? 'The other controller did what the server decided.' : 'Nothing to compare yet: the other controller has not acted since the agent connected.'));
    reconcile(rows, grouped(shown), ({ key }) => key, makeRow, drawRow);
  }

  return {
    stream: { view: 'differences' },
    isKept: known !== null,
    begin() {},
    event(name, data) {
      if (name !== 'differences' || !data) return;
      known = last = data;
      copy.reset();
      draw();
    },
    close() {
      clearInterval(second);
    },
  };
}

function makeRow({ members: [one] }) {
  const time = h('time', {});
  const sets = h('td', {});
  const [decided, done, reason] = [h('td', {}), h('td', {}), h('td', {})];
  return Object.assign(h('tr', { 'data-departure': word(one.departure, 'DEPARTURE_') }, h('td', { class: 'when' }, time), sets, h('td', {}, subjectOf(one)), decided, done, reason), { time, sets, decided, done, reason });
}

function drawRow(element, { members }) {
  const newest = members.reduce((latest, one) => (one.detectTime > latest.detectTime ? one : latest));
  const at = Date.parse(newest.detectTime);
  setText(element.time, `${age(now() - at)} ago`);
  setAttribute(element.time, 'title', fullTime(at));
  setText(element.decided, common(members, 'decided'));
  setText(element.done, common(members, 'done'));
  setText(element.reason, why({ ...newest, why: common(members, 'why') }));
  const shown = members.map((one) => `${one.replicaSet.uid} ${one.detectTime}`).join();
  if (element.dataset.shown === shown) return;
  element.dataset.shown = shown;
  const clusterOf = clusterIn(last.differences);
  const link = (one) => h('a', { href: hashOf(['replicasets', clusterOf(one), one.replicaSet.namespace, one.replicaSet.name]) }, pathOf(one));
  const each = (one) => h('li', {}, link(one), h('span', { class: 'dim' }, ` ${one.decided} / ${one.done}`));
  const isOpen = element.sets.querySelector('details')?.open;
  element.sets.replaceChildren(members.length === 1 ? link(newest) : h('details', { open: isOpen }, h('summary', {}, count(members.length, 'difference')), h('ul', {}, members.map(each))));
}
