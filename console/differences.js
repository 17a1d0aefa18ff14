// How far another controller agrees with the decisions of the server, in shadow-mode sessions, as a report to pass on.

import { makeCopy } from './copy.js';
import { h, reconcile, setText } from './dom.js';
import { age, count, fullTime, now, word } from './format.js';
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

/** Returns the result of all comparisons, and the parts of the sentence behind it. */
function headline(answer, all) {
  const [compared, unexplained, notCompared] = [all.compared, all.unexplained, all.notCompared].map((number) => number.toLocaleString('en'));
  const long = answer.since ? `, for ${age(now() - Date.parse(answer.since))}` : '';
  const rest = `${notCompared} not compared. ${share(all)} agree, of ${count(Number(answer.replicaSets), 'ReplicaSet')}${long}. Pods that others deleted: ${answer.deletedByOthers}.`;
  return [`${compared} compared, ${unexplained} unexplained`, `; ${rest}`];
}

function markdown(answer) {
  const counts = countsOf(answer);
  const all = counts.at(-1);
  const row = (...cells) => `| ${cells.map(cell).join(' | ')} |`;
  const lines = ['# Decree beside the controller of the cluster', '', headline(answer, all).join(''), '', row('subject', 'compared', 'agree', 'explained', 'unexplained', 'not compared'), '| --- | ---: | ---: | ---: | ---: | ---: |',
    ...counts.map((one) => row(one.subject, one.compared, share(one), one.explained, one.unexplained, one.notCompared))];
  if (answer.differences.length > 0) {
    lines.push('', `## Differences: ${answer.differences.length}`, '', row(...HEADINGS), row(...HEADINGS.map(() => '---')));
    for (const one of answer.differences) lines.push(row(one.time, pathOf(one), subjectOf(one), one.decided, one.done, why(one)));
  }
  return `${lines.join('\n')}\n`;
}

export function showDifferences(main, query) {
  let known = null;
  let isFiltered = query.show === 'unexplained';
  const rate = h('p', { id: 'rate' });
  const intro = h('p', { class: 'summary', id: 'summary' });
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
  main.replaceChildren(h('section', { class: 'page' }, h('h1', {}, 'Differences'), rate, agreement, intro, actions, list, empty));

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
    const { differences, shadows } = known;
    const unexplained = differences.filter(isUnexplained);
    const shown = isFiltered ? unexplained : differences;
    const counts = countsOf(known);
    const all = counts.at(-1);
    agreement.hidden = shadows === 0 || all.compared === 0;
    actions.hidden = shadows === 0;
    list.hidden = shown.length === 0;
    empty.hidden = shown.length > 0;
    const [verdict, rest] = headline(known, all);
    rate.replaceChildren(...(agreement.hidden ? [] : [h('span', { class: 'numbers' }, verdict), rest]));
    subjects.replaceChildren(...counts.map((one) => h('tr', {}, [one.subject, one.compared.toLocaleString('en'), share(one), one.explained, one.unexplained, one.notCompared].map((text, at) => h(at === 0 ? 'th' : 'td', at === 0 ? { scope: 'row' } : { class: 'numbers' }, String(text))))));
    setText(intro, differences.length > 0 ? `${count(differences.length, 'difference')}, ${unexplained.length} unexplained.` : '');
    if (shadows === 0) empty.replaceChildren(h('h2', {}, 'No agent is in shadow mode'), h('p', {}, 'An agent in shadow mode changes nothing, and compares what another controller does with what the server decides: ', h('code', {}, 'decree up --cluster kubernetes')));
    else if (shown.length === 0) empty.replaceChildren(h('h2', {}, 'No differences'), h('p', {}, differences.length > 0 ? 'Each difference is explained.' : all.compared > 0 ? 'The other controller did what the server decided.' : 'Nothing to compare yet: the other controller has not acted since the agent connected.'));
    reconcile(rows, shown, (one) => `${one.time} ${one.replicaSet.uid} ${one.subject} ${one.decided}`, makeRow, () => {});
  }

  return {
    stream: { view: 'differences' },
    begin() {},
    event(name, data) {
      if (name !== 'differences' || !data) return;
      known = data;
      copy.reset();
      draw();
    },
    close() {},
  };
}

function makeRow(one) {
  const { namespace, name } = one.replicaSet;
  return h('tr', { 'data-departure': word(one.departure, 'DEPARTURE_') },
    h('td', {}, h('time', { datetime: one.time }, fullTime(Date.parse(one.time)))),
    h('td', {}, h('a', { href: hashOf(['replicasets', one.cluster, namespace, name]) }, pathOf(one))),
    h('td', {}, subjectOf(one)), h('td', {}, one.decided), h('td', {}, one.done), h('td', {}, why(one)));
}
