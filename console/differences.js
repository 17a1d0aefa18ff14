// What another controller did otherwise than decided, in sessions of mode shadow.

import { h, reconcile, setText } from './dom.js';
import { count, word } from './format.js';
import { hashOf } from './route.js';

const DEPARTURES = { UNSPECIFIED: 'unexplained', ORDER_OF_DELETION: 'order of deletion', REPLICA_FAILURE: 'ReplicaFailure', NAMESPACE_ENDING: 'the namespace ends', DELETED_BY_OTHERS: 'deleted by others' };

/** Shows the differences in `main`. */
export function showDifferences(main) {
  const intro = h('p', { class: 'summary', id: 'summary' });
  const rows = h('tbody', {});
  const headings = ['Time', 'ReplicaSet', 'What', 'Decided here', 'Done there', 'Explained by'];
  const table = h('div', { class: 'wide', tabindex: 0, role: 'region', 'aria-label': 'Differences' }, h('table', {}, h('thead', {}, h('tr', {}, headings.map((text) => h('th', { scope: 'col' }, text)))), rows));
  const empty = h('div', { class: 'empty', id: 'empty' }, h('h2', {}, 'Loading…'));
  table.hidden = true;
  main.replaceChildren(h('section', { class: 'page' }, h('h1', {}, 'Differences'), intro, table, empty));

  function show({ differences, shadows, compared }) {
    table.hidden = differences.length === 0;
    empty.hidden = differences.length > 0;
    const open = differences.filter((one) => one.departure === 'DEPARTURE_UNSPECIFIED').length;
    setText(intro, shadows > 0 ? `${Number(compared).toLocaleString('en')} compared, ${count(differences.length, 'difference')}, ${open} of them unexplained.` : '');
    if (shadows === 0) empty.replaceChildren(h('h2', {}, 'No agent is in mode shadow'), h('p', {}, 'An agent that runs with ', h('code', {}, '--mode shadow'), ' beside another controller changes nothing, and what that one does otherwise is shown here.'));
    else if (differences.length === 0) empty.replaceChildren(h('h2', {}, 'No differences'), h('p', {}, 'The other controller has done what was decided here.'));
    reconcile(rows, differences, (one) => `${one.time} ${one.replicaSet.uid} ${one.subject} ${one.decided}`, makeRow, () => {});
  }

  return {
    stream: { view: 'differences' },
    begin() {},
    event(name, data) {
      if (name === 'differences' && data) show(data);
    },
    close() {},
  };
}

function makeRow(one) {
  const { namespace, name } = one.replicaSet;
  const departure = word(one.departure, 'DEPARTURE_');
  const time = new Date(Date.parse(one.time));
  return h('tr', { 'data-departure': departure },
    h('td', {}, h('time', { datetime: one.time }, time.toLocaleString('en', { hour12: false }))),
    h('td', {}, h('a', { href: hashOf(['replicasets', one.cluster, namespace, name]) }, `${namespace}/${name}`)),
    h('td', {}, word(one.subject, 'SUBJECT_').toLowerCase()), h('td', {}, one.decided), h('td', {}, one.done), h('td', {}, DEPARTURES[departure] ?? departure));
}
