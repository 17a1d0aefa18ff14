// The board: all ReplicaSets. Those that need attention come first, and those with the same cause share a row.

import { SEVERITIES, causeOf, commandOf, fillBadge, groupOf, makeBadge, nextAttempt, severityOf, watchedIn } from './cause.js';
import { makeCommand } from './copy.js';
import { h, setAttribute, setText } from './dom.js';
import { count, late, learnTime, now } from './format.js';
import { headlineOf } from './headline.js';
import { makeHeat } from './heat.js';
import { makeList } from './list.js';
import { hashOf, lastBoard } from './route.js';
import { fillGroup, fillRow, makeGroup, makeRow } from './row.js';
import { makeScope } from './scope.js';
import { group, sorted } from './sort.js';

/** How long to keep the rows of agents that have not reconnected since the server restarted. */
const ABSENT_MAX = 60_000;
const HEADINGS = [['severity', 'Severity'], ['name', 'ReplicaSet'], ['pods', 'Pods'], ['cause', 'Cause'], ['unconverged', 'Unconverged']];
const CONVERGED = Number.MAX_SAFE_INTEGER;

/** The open groups, and the place on the board that was left last. Back returns to it. */
const open = new Set();
let left = null;
/** What the board showed last. */
let kept = { rows: new Map(), standing: null };

/** Two clusters can have ReplicaSets with one UID. */
export const keyOf = (row) => `${row.replicaSet.uid} ${row.cluster}`;

export function showBoard(main, query) {
  let { rows, standing } = kept;
  /** The rows of a new stream. They replace `rows` once the stream has sent all of them. */
  let fresh = new Map();
  /** The rows from before a reconnect, until the same agents are back. */
  let before = null;
  let wasLive = false;
  let listed = [];
  /** The number of letters of a name that fit. */
  let room = 24;
  /** The requested animation frame. A closed board requests none. */
  let frame = 0;
  let stale = true;
  let clusterOf = (row) => row.cluster;

  const scope = makeScope(query, () => {
    list.toTop();
    stale = true;
    schedule();
  });
  let returning = left?.address === lastBoard() ? left : null;
  const headline = h('h1', { class: 'sentence', id: 'headline' }, 'Board');
  const next = makeCommand();
  const summary = h('p', { class: 'summary', id: 'summary' });
  const badge = makeBadge();
  const mode = h('span', {});
  const watched = h('p', { class: 'dim', id: 'watched', hidden: true }, badge, ' ', mode);
  const list = makeList({ make: (item) => (item.members ? makeGroup(() => toggle(item.key)) : makeRow()), fill, press, isTall: (item) => Boolean(item.members) || item.severity !== 'IN_SYNC' });
  const heat = makeHeat((entry) => (window.location.hash = addressOf(entry.row)));
  const columns = HEADINGS.map(([id, text]) => h('span', { role: 'columnheader' }, h('button', { type: 'button', onclick: () => scope.sortBy(id) }, text)));
  const table = h('div', { class: 'table', role: 'table', 'aria-label': 'ReplicaSets' }, h('div', { class: 'head', role: 'rowgroup' }, h('div', { class: 'row', role: 'row' }, columns)), list.element);
  const empty = h('div', { class: 'empty', id: 'empty' });
  const printed = h('p', { class: 'printed' });
  /** As wide as 20 letters of a name. */
  const ruler = h('span', { class: 'name ruler', 'aria-hidden': 'true' }, '0'.repeat(20));
  main.replaceChildren(h('section', { class: 'board' },
    h('header', { class: 'lead' }, h('div', {}, headline, next), h('a', { class: 'primary', href: '#/what-if' }, 'What if…?')), watched, h('div', { class: 'controls' }, scope.element, summary), heat.element, printed, table, empty, ruler));

  list.element.addEventListener('scroll', schedule, { passive: true });
  const sized = new ResizeObserver(schedule);
  sized.observe(list.element);
  const second = setInterval(schedule, 1000);
  window.addEventListener('beforeprint', print);
  window.addEventListener('afterprint', schedule);
  if (standing) schedule();

  function print() {
    const [some, all] = list.print().map((number) => number.toLocaleString('en'));
    setText(printed, some === all ? '' : `The first ${some} of ${all} rows are printed. Search or filter to print others.`);
  }

  function schedule() {
    frame ||= requestAnimationFrame(() => {
      frame = 0;
      if (stale) select();
      list.draw();
      table.classList.toggle('scrolls', list.element.scrollHeight > list.element.clientHeight);
      heat.draw();
      const who = list.element.querySelector('.one:not([data-severity="IN_SYNC"]) .who, .one .who');
      const letters = who ? Math.floor((20 * who.clientWidth) / ruler.offsetWidth) : room;
      if (letters === room) return;
      room = letters;
      schedule();
    });
  }

  function select() {
    stale = false;
    clusterOf = clusterIn([...rows.values()].map(({ row }) => row));
    const all = [...rows.values()].filter(scope.matches);
    const counts = new Map(Object.keys(SEVERITIES).map((severity) => [severity, 0]));
    for (const entry of all) {
      entry.severity = severityOf(entry.row);
      entry.isMember = false;
      counts.set(entry.severity, counts.get(entry.severity) + 1);
    }
    scope.count(rows.values(), all.length, counts);
    const { sort, descending } = scope;
    listed = sorted(all.filter((entry) => scope.shows(entry.severity)), sort, descending);
    const items = sort === 'severity' ? group(listed, open) : listed;
    for (const [at, [id]] of HEADINGS.entries()) setAttribute(columns[at], 'aria-sort', id !== sort ? 'none' : descending ? 'descending' : 'ascending');
    setAttribute(table, 'aria-rowcount', items.length + 1);
    heat.show(all, counts);
    tell(all.length, counts);
    lead(all, counts);
    watch();
    explain();
    list.show(items);
    if (!returning || items.length === 0) return;
    list.restore(returning);
    returning = null;
  }

  /** Says the most important fact in one sentence, with the command that helps. */
  function lead(all, counts) {
    const { text, entry } = headlineOf(all, counts);
    setText(headline, text || 'Board');
    next.show(entry ? commandOf(entry.row) : '');
  }

  function tell(total, counts) {
    const parts = [...counts].filter(([, number]) => number > 0).map(([severity, number]) => `${number.toLocaleString('en')} ${SEVERITIES[severity].word.toLowerCase()}`);
    const absent = before ? ` ${count(before.sessions, 'agent')} connected before the server restarted; until ${before.sessions === 1 ? 'it is' : 'they are'} back, the board shows what was known.` : '';
    const stale = (standing?.stale ?? []).map(late).join('');
    summary.classList.toggle('plain', !absent && !stale);
    setText(summary, rows.size === 0 ? stale : `${count(total, 'ReplicaSet')}${total < rows.size ? ` of ${rows.size.toLocaleString('en')}` : ''}${parts.length > 0 ? `: ${parts.join(', ')}` : ''}.${absent}${stale}`);
    const blocked = counts.get('BLOCKED');
    document.title = `${blocked > 0 ? `(${blocked.toLocaleString('en')}) ` : ''}Board · Decree`;
  }

  /** Shows the badge once if it applies to all ReplicaSets, and not in each row. */
  function watch() {
    const modes = new Set([...rows.values()].map(({ row }) => watchedIn(row)));
    const [only] = modes.size === 1 ? modes : [''];
    watched.hidden = only === '';
    table.classList.toggle('watched', only !== '');
    fillBadge(badge, only);
    setText(mode, `No decision is executed (${only} mode).`);
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
    if (!standing) say('Loading…', 'The server sends the first rows.');
    else if (rows.size > 0) say('Nothing found', 'No ReplicaSet matches the search and the filters. ', h('button', { type: 'button', onclick: () => scope.reset() }, 'Show all'));
    else if (standing.sessions === 0) say('No agent is connected', 'ReplicaSets appear as soon as an agent connects. To see those of your cluster, and change nothing: ', makeCommand('decree up --cluster kubernetes'));
    else if (standing.synced < standing.sessions) say('An agent is listing its cluster', 'Its ReplicaSets appear as the list arrives.');
    else if (standing.stale.some((view) => view.missing)) say('A session does not answer', 'Its ReplicaSets appear when it does.');
    else say('No ReplicaSets', 'The connected clusters have none that you have access to.', ...(standing.kubernetes ? [' To compare: ', makeCommand('kubectl get replicasets -A')] : []));
  }

  function fill(element, item) {
    if (item.members) fillGroup(element, item, open.has(item.key));
    else fillRow(element, item, addressOf(item.row), room, nextAttempt(item.row));
  }

  function addressOf(row) {
    return hashOf(['replicasets', clusterOf(row), row.replicaSet.namespace, row.replicaSet.name]);
  }

  function toggle(key) {
    if (!open.delete(key)) open.add(key);
    stale = true;
    schedule();
  }

  function press(item, key) {
    if (!item?.members || open.has(item.key) !== (key === 'ArrowLeft') || !['ArrowLeft', 'ArrowRight'].includes(key)) return false;
    toggle(item.key);
    return true;
  }

  function take(data) {
    for (const row of data) {
      if (!row) continue;
      const { namespace, name } = row.replicaSet;
      const path = `${row.cluster}/${namespace}/${name}`;
      const since = row.divergeTime ? Date.parse(row.divergeTime) : CONVERGED;
      fresh.set(keyOf(row), { key: keyOf(row), row, since, name: path, search: path.toLowerCase(), cause: causeOf(row), group: groupOf(row), severity: '' });
    }
  }

  /** Replaces all rows with those of the stream, unless agents from before the reconnect are still absent. */
  function settle(data) {
    const isBack = !before || (data.sessions >= before.sessions && data.synced === data.sessions) || now() > before.until;
    if (isBack) before = null;
    standing = data;
    rows = before ? new Map([...before.rows, ...fresh]) : fresh;
    kept = { rows, standing };
  }

  return {
    stream: { view: 'board' },
    isKept: kept.standing !== null,
    begin() {
      if (wasLive && standing?.sessions > 0) before = { rows, sessions: standing.sessions, until: now() + ABSENT_MAX };
      wasLive = true;
      fresh = new Map();
    },
    event(name, data) {
      if (name === 'rows') take(data);
      if (name !== 'board') return;
      learnTime(data.seconds);
      for (const key of data.gone) fresh.delete(key);
      settle(data);
      stale = true;
      schedule();
    },
    focusSearch: scope.focus,
    close() {
      left = { ...list.place(), address: lastBoard() };
      cancelAnimationFrame(frame);
      frame = -1;
      clearInterval(second);
      window.removeEventListener('beforeprint', print);
      window.removeEventListener('afterprint', schedule);
      sized.disconnect();
      heat.close();
    },
  };
}

/** Returns what names the cluster of a row in an address: its UID, if another cluster of these rows has the same name. */
export function clusterIn(rows) {
  const uids = new Map();
  for (const { cluster, clusterUid } of rows) uids.set(cluster, [undefined, clusterUid].includes(uids.get(cluster)) ? clusterUid : null);
  return ({ cluster, clusterUid }) => (uids.get(cluster) === null ? clusterUid : cluster);
}
