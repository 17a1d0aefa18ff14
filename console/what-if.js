// "What if?" for a cluster: the effect of a scale, a node drain or a quota. The page only asks; it changes nothing.

import { clusterIn, keyOf } from './board.js';
import { h, setText } from './dom.js';
import { count, late, learnTime } from './format.js';
import { hashOf, replaceQuery } from './route.js';
import { makeScale } from './scale.js';
import { ask } from './stream.js';

/** The changes by their part of the address, each with its title, its fields and the columns of its answer. A field without attributes is a choice. */
const CHANGES = {
  scale: ['Scale a ReplicaSet', [['ReplicaSet', 'replica-set', { placeholder: 'namespace/name', list: 'known' }]], []],
  drain: ['Drain a node', [['Node', 'node']], [['Desired', (set) => set.replicas], ['Current', (set) => set.active], ['Deleted', podsOf], ['Missing then', (set) => set.creates], ['Ready left', (set) => set.readyLeft ?? '–']]],
  quota: ['Set a quota of pods', [['Namespace', 'namespace'], ['Pods', 'pods', { type: 'number', min: 0, max: 2_147_483_647 }]],
    [['Desired', (set) => set.replicas], ['Current', (set) => set.active], ['Creates', (set) => set.creates], ['Refused', refusedOf]]],
};

export function showWhatIf(main, query, change = 'scale') {
  const [, fields, columns] = CHANGES[change];
  let rows = new Map();
  /** The number of pods by node, and what the choice says before a node is chosen. */
  let nodes = new Map();
  let hint = `Choose a ${fields[0][0].toLowerCase()}`;
  /** The number of offered names. */
  let offered = 0;
  let isAsked = false;
  /** The sessions and the cluster for which the nodes were read. */
  let learned = '';
  let abort = null;
  let { replicas } = query;
  /** The preview of a ReplicaSet, on the tab Scale. */
  let scale = null;

  const inputs = fields.map(([, name, attributes]) => (attributes ? h('input', { id: name, type: 'search', value: query[name] ?? '', autocomplete: 'off', spellcheck: 'false', required: true, ...attributes }) : h('select', { id: name, required: true })));
  const [subject] = inputs;
  const known = change === 'scale' ? h('datalist', { id: 'known' }) : subject;
  const cluster = h('select', { id: 'cluster', onchange: learn });
  const forCluster = h('label', { for: 'cluster', hidden: true }, h('span', { class: 'dim' }, 'Cluster'), ' ', cluster);
  const form = h('form', { class: 'tools', onsubmit: submit }, forCluster, inputs.map((input, at) => h('label', { for: input.id }, h('span', { class: 'dim' }, fields[at][0]), ' ', input)), h('button', { class: 'primary' }, 'Preview'));
  const answer = h('output', { class: 'sentence', id: 'what-if-answer' });
  const note = h('p', { class: 'dim', id: 'what-if-note' }, 'See the effect before anyone does it. This changes nothing.');
  const lateness = h('p', { class: 'dim', id: 'what-if-late' });
  const table = h('div', { class: 'wide affected', id: 'affected', tabindex: 0, role: 'region', 'aria-label': 'Affected ReplicaSets', hidden: true });
  const preview = h('div', { id: 'preview' });
  const tabs = Object.entries(CHANGES).map(([name, [title]]) => h('a', { href: hashOf(['what-if', name]), 'aria-current': name === change ? 'page' : null }, title));
  main.replaceChildren(h('section', { class: 'page' }, h('h1', {}, 'What if?'), h('nav', { class: 'tabs', 'aria-label': 'Changes' }, tabs), form, answer, note, lateness, preview, table, known === subject ? null : known));
  offer(query[subject.id]);

  const valueOf = (name) => inputs.find((input) => input.id === name).value.trim();

  function submit(event) {
    event.preventDefault();
    replicas = '';
    replaceQuery({ ...Object.fromEntries(inputs.map((input) => [input.id, input.value.trim()])), cluster: forCluster.hidden ? '' : cluster.value, replicas });
    request();
  }

  function say(text, more = '') {
    setText(answer, text);
    setText(note, more);
  }

  function request() {
    abort?.abort();
    table.hidden = true;
    if (change === 'scale') showScale(valueOf('replica-set'));
    else if (cluster.value) foretell(cluster.value);
    else say('No agent is connected, so there is no cluster to ask about.');
  }

  async function foretell(of) {
    abort = new AbortController();
    const asked = Object.fromEntries(inputs.map(({ id }) => [id, valueOf(id)]));
    try {
      show(asked, await ask('simulate-cluster', { cluster: of, ...asked }, abort.signal));
    } catch (error) {
      if (error.name !== 'AbortError') say(`No preview: ${error.message}.`);
    }
  }

  /** Shows the slider of a ReplicaSet. Its page also shows the pods by node. */
  function showScale(path) {
    scale?.panel.close();
    const found = [...rows.values()].find(({ clusterUid, replicaSet: { namespace, name } }) => clusterUid === cluster.value && path === `${namespace}/${name}`);
    scale = null;
    preview.replaceChildren();
    if (!found) {
      say(`No ReplicaSet ${path} is known.`, 'Write NAMESPACE/NAME.');
      return;
    }
    const { namespace, name } = found.replicaSet;
    const parts = ['replicasets', clusterIn(rows.values())(found), namespace, name];
    const panel = makeScale({ cluster: found.clusterUid, namespace, name }, { replicas }, () => {}, (pod) => (window.location.hash = hashOf(parts, { pod })));
    scale = { panel, path, key: keyOf(found), row: found };
    panel.standing(found);
    preview.replaceChildren(panel.element);
    say(readyOf(path, found));
    note.replaceChildren('See its pods by node on ', h('a', { href: hashOf(parts) }, 'its page'), '.');
  }

  function show(asked, { replicaSets, nextPageToken, quota, staleViews = [] }) {
    const absent = staleViews.filter((view) => view.missing).map(late).join('');
    const more = `${nextPageToken ? ' There are more ReplicaSets than the table has.' : ''}${absent && ` This lacks the ReplicaSets of a session.${absent}`}`;
    const [text, detail] = change === 'quota' ? quotaSentence(asked, quota) : drainSentence(asked, replicaSets, more !== '');
    const isUnknown = change === 'quota' && ![...rows.values()].some(({ replicaSet }) => replicaSet.namespace === asked.namespace);
    say(isUnknown && !absent ? `No ReplicaSet is known in the namespace ${asked.namespace}.` : text, `${detail}${more}`.trim());
    const namespaces = new Map();
    for (const set of replicaSets) {
      const { namespace } = set.replicaSet;
      if (!namespaces.has(namespace)) namespaces.set(namespace, []);
      namespaces.get(namespace).push(set);
    }
    const clusterOf = clusterIn(rows.values());
    const head = h('tr', {}, ['ReplicaSet', ...columns.map(([title]) => title)].map((title) => h('th', { scope: 'col' }, title)));
    table.replaceChildren(h('table', {}, h('thead', {}, head), [...namespaces].map(([namespace, sets]) => h('tbody', {}, sum(namespace, sets), sets.map((set) => row(set, clusterOf))))));
    table.hidden = replicaSets.length === 0;
  }

  function sum(namespace, sets) {
    const parts = [count(sets.length, 'ReplicaSet'), change === 'drain' && `${count(total(sets, (set) => set.deleted), 'pod')} deleted`];
    return h('tr', { class: 'namespace' }, h('th', { scope: 'rowgroup', colspan: columns.length + 1 }, h('strong', {}, namespace), ` ${parts.filter(Boolean).join(', ')}`));
  }

  function row(set, clusterOf) {
    const { namespace, name } = set.replicaSet;
    const of = clusterOf({ cluster: set.cluster, clusterUid: cluster.value });
    return h('tr', {}, h('td', {}, h('a', { href: hashOf(['replicasets', of, namespace, name]), class: 'name' }, name)), columns.map(([, cell]) => h('td', { class: 'numbers' }, cell(set))));
  }

  /** Offers what the board knows, and asks the question of the address once. */
  function settle() {
    const clusters = new Map([...rows.values()].map((row) => [row.clusterUid, row.cluster]));
    const wanted = query.cluster ?? cluster.value;
    if (wanted && !clusters.has(wanted)) clusters.set(wanted, wanted);
    const signature = JSON.stringify([...clusters]);
    if (cluster.dataset.shown !== signature) {
      cluster.dataset.shown = signature;
      const value = cluster.value || wanted;
      cluster.replaceChildren(...[...clusters].map(([uid, name]) => h('option', { value: uid, selected: uid === value }, name)));
      forCluster.hidden = clusters.size < 2;
    }
    offer();
    followScale();
  }

  /** Shows the changes of the ReplicaSet of the slider. */
  function followScale() {
    const found = scale && rows.get(scale.key);
    if (!scale || found === scale.row) return;
    scale.row = found;
    setText(answer, found ? readyOf(scale.path, found) : `No ReplicaSet ${scale.path} is known now.`);
    if (!found) return;
    scale.panel.standing(found);
    scale.panel.refresh();
  }

  /** Reads the nodes of the chosen cluster, which are not among the rows. */
  async function learn() {
    const of = cluster.value;
    if (change === 'drain' && of) {
      try {
        const answer = await ask('nodes', { cluster: of });
        if (of !== cluster.value) return;
        nodes = new Map(answer.nodes);
        hint = answer.complete ? 'Choose a node' : 'Choose a node (the list is incomplete)';
      } catch (error) {
        nodes = new Map();
        hint = `No nodes: ${error.message}`;
      }
    }
    offer();
  }

  /** Returns the names that the first field can have in the chosen cluster, with their numbers of pods. */
  function names() {
    if (change === 'drain') return nodes;
    const found = new Map();
    for (const { clusterUid, active, replicaSet: { namespace, name } } of rows.values()) {
      const key = change === 'scale' ? `${namespace}/${name}` : namespace;
      if (clusterUid === cluster.value) found.set(key, (found.get(key) ?? 0) + active);
    }
    return found;
  }

  /** Offers the names. A chosen one stays, even if it does not exist; a list in use does not change. */
  function offer(chosen = subject.value) {
    const found = names();
    const signature = JSON.stringify([hint, ...found]);
    if (known.dataset.shown === signature || (document.activeElement === subject && offered > 0)) return;
    known.dataset.shown = signature;
    offered = found.size;
    const isChoice = known === subject;
    const options = [...found].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, pods]) => h('option', { value: name }, `${isChoice ? `${name}, ` : ''}${count(pods, 'pod')}`));
    if (isChoice) options.unshift(h('option', { value: '' }, hint), ...(chosen && !found.has(chosen) ? [h('option', { value: chosen }, chosen)] : []));
    known.replaceChildren(...options);
    if (isChoice) subject.value = chosen ?? '';
  }

  return {
    stream: { view: 'board' },
    begin() {
      rows = new Map();
      learned = '';
    },
    event(name, data) {
      if (name === 'rows') for (const row of data) if (row) rows.set(keyOf(row), row);
      if (name !== 'board') return;
      learnTime(data.seconds);
      for (const key of data.gone) rows.delete(key);
      setText(lateness, (data.stale ?? []).map(late).join('').trim());
      settle();
      const known = `${data.synced} ${cluster.value}`;
      if (known !== learned) learn();
      learned = known;
      if (!isAsked && cluster.value && inputs.every(({ value }) => value)) request();
      isAsked ||= cluster.value !== '';
    },
    close() {
      abort?.abort();
      scale?.panel.close();
    },
  };
}

/** The most ReplicaSets that a sentence names. */
const NAMED_MAX = 3;

const readyOf = (path, { ready, replicas }) => `${path}: ${ready} of ${count(replicas, 'pod')} ready`;
const total = (sets, of) => sets.reduce((all, set) => all + of(set), 0);

/** What a drain does to the ReplicaSets of the answer, which are all of them unless there are more. */
function drainSentence({ node }, sets, areMore) {
  if (sets.length === 0 && areMore) return [`A drain of ${node} affects no ReplicaSet of those that are known now.`, ''];
  if (sets.length === 0) return [`A drain of ${node} affects no ReplicaSet: no active pod of one is known there.`, ''];
  const before = total(sets, (set) => Math.max(0, set.replicas - set.active));
  const missing = count(total(sets, (set) => set.creates), 'pod');
  const named = (some) => listed(some.slice(0, NAMED_MAX).map(({ replicaSet: { namespace, name } }) => `${namespace}/${name}`), some.length);
  const bare = sets.filter((set) => set.replicas > 0 && set.readyLeft === 0);
  const helped = bare.filter((set) => set.inAdvance > 0);
  const left = bare.length > 0 ? `${bare.length.toLocaleString('en')} of them ${bare.length === 1 ? 'is' : 'are'} left with no ready pod: ${named(bare)}. ` : '';
  const advance = helped.length > 0 ? `With a disruption budget, these get replacements first: ${named(helped)}. ` : '';
  return [`A drain of ${node} deletes ${areMore ? 'at least ' : ''}${count(total(sets, (set) => set.deleted), 'pod')} of ${count(sets.length, 'ReplicaSet')}.`,
    `${left}${advance}All then lack ${areMore ? 'at least ' : ''}${missing}${before > 0 ? `, of which they lack ${before.toLocaleString('en')} already now` : ''}. Disruption budgets are not known to the server.`];
}

/** The first names of a list, and the number of the others. */
function listed(names, all) {
  const more = all - names.length;
  return `${names.join(', ')}${more > 0 ? ` and ${more.toLocaleString('en')} more` : ''}`;
}

function quotaSentence({ namespace, pods }, quota) {
  const [used, creates, refused] = [quota.pods, quota.creates, quota.refused].map(Number);
  const over = used - Number(pods);
  const lost = over >= 0 ? `It deletes no pods, but a lost pod is not replaced before ${over === 0 ? '1 pod is' : `${(over + 1).toLocaleString('en')} pods are`} gone.` : '';
  const order = refused > 0 ? ' The order of creates is not defined: “Refused” is the least and the most of a ReplicaSet.' : '';
  return [`A quota of ${count(Number(pods), 'pod')} in ${namespace} refuses ${refused.toLocaleString('en')} of ${count(creates, 'create')}; ${count(used, 'pod')} ${used === 1 ? 'counts' : 'count'} now.`, `${lost}${order}`.trim()];
}

/** The number of pods, which opens their names. */
function podsOf({ deleted, deletedPods }) {
  return h('details', {}, h('summary', {}, count(deleted, 'pod')), h('span', { class: 'pod' }, listed(deletedPods, deleted)));
}

function refusedOf({ refusedMin, refusedMax }) {
  return String(refusedMin === refusedMax ? refusedMax : `${refusedMin} to ${refusedMax}`);
}
