// "What if?" for a cluster: which ReplicaSets a node drain or a quota would affect. The panel only asks; it changes nothing.

import { h, setText } from './dom.js';
import { count } from './format.js';
import { hashOf, replaceQuery } from './route.js';
import { ask } from './stream.js';

/** The columns of each question, with the value for a ReplicaSet. */
const COLUMNS = {
  drain: [['Desired', (set) => set.replicas], ['Current', (set) => set.active], ['Deleted', (set) => set.deleted], ['Lacking', (set) => set.creates], ['Pods', podsOf]],
  quota: [['Desired', (set) => set.replicas], ['Current', (set) => set.active], ['Creates', (set) => set.creates], ['Refused', refusedOf]],
};

/** Creates the panel. `clusterOf` returns the cluster to ask about, or nothing if the choice is ambiguous. */
export function makeWhatIf(query, clusterOf) {
  let abort = null;
  const [namespace = '', pods = ''] = (query.quota ?? '').split('/');
  const kind = h('select', { id: 'what-if-kind', onchange: choose }, h('option', { value: 'drain' }, 'Drain a node'), h('option', { value: 'quota' }, 'Set a quota of pods'));
  kind.value = query.quota ? 'quota' : 'drain';
  const text = (id, value, max) => h('input', { id, type: 'search', value, maxlength: max, autocomplete: 'off', spellcheck: 'false', required: true });
  const node = text('what-if-node', query.drain ?? '', 253);
  const of = text('what-if-namespace', namespace || 'default', 63);
  const number = h('input', { id: 'what-if-pods', type: 'number', min: 0, max: 2_147_483_647, value: pods, required: true });
  const labelled = (input, said) => h('label', { for: input.id }, h('span', { class: 'dim' }, said), ' ', input);
  const [forNode, forNamespace, forPods] = [labelled(node, 'Node'), labelled(of, 'Namespace'), labelled(number, 'Pods')];
  const answer = h('output', { class: 'answer', id: 'what-if-answer' });
  const table = h('div', { class: 'wide affected', id: 'affected', tabindex: 0, role: 'region', 'aria-label': 'Affected ReplicaSets', hidden: true });
  const form = h('form', { class: 'tools', onsubmit: submit }, labelled(kind, 'Change'), forNode, forNamespace, forPods, h('button', {}, 'Preview'));
  const element = h('details', { class: 'what-if', open: Boolean(query.drain || query.quota) }, h('summary', {}, 'What if…?'), form, answer, table);
  choose();

  function choose() {
    const isDrain = kind.value === 'drain';
    forNode.hidden = !isDrain;
    node.disabled = !isDrain;
    for (const [label, input] of [[forNamespace, of], [forPods, number]]) {
      label.hidden = isDrain;
      input.disabled = isDrain;
    }
    setText(answer, 'See which ReplicaSets a change of the cluster would affect. This changes nothing.');
    table.hidden = true;
  }

  function submit(event) {
    event.preventDefault();
    const isDrain = kind.value === 'drain';
    replaceQuery({ drain: isDrain ? node.value : '', quota: isDrain ? '' : `${of.value}/${number.value}` });
    request();
  }

  async function request() {
    abort?.abort();
    abort = new AbortController();
    const cluster = clusterOf();
    if (cluster === undefined) {
      table.hidden = true;
      setText(answer, 'Select a cluster above: a change is of one cluster.');
      return;
    }
    const asked = kind.value === 'drain' ? { node: node.value } : { namespace: of.value, pods: number.value };
    try {
      show(asked, await ask('simulate-cluster', { cluster, ...asked }, abort.signal));
    } catch (error) {
      if (error.name === 'AbortError') return;
      table.hidden = true;
      setText(answer, `No preview: ${error.message}.`);
    }
  }

  function show(asked, { replicaSets, nextPageToken, quota }) {
    const more = nextPageToken ? ' There are more ReplicaSets than the table has.' : '';
    setText(answer, `${asked.node === undefined ? quotaSentence(asked, quota) : drainSentence(asked, replicaSets, more !== '')}${more}`);
    const columns = COLUMNS[asked.node === undefined ? 'quota' : 'drain'];
    const row = (set) => {
      const { namespace: in_, name } = set.replicaSet;
      const link = h('a', { href: hashOf(['replicasets', set.cluster, in_, name]), class: 'name' }, `${in_}/${name}`);
      return h('tr', {}, h('td', {}, link), columns.map(([, cell]) => h('td', { class: 'numbers' }, cell(set))));
    };
    const head = h('tr', {}, ['ReplicaSet', ...columns.map(([title]) => title)].map((title) => h('th', { scope: 'col' }, title)));
    table.replaceChildren(h('table', {}, h('thead', {}, head), h('tbody', {}, replicaSets.map(row))));
    table.hidden = replicaSets.length === 0;
  }

  return {
    element,
    /** Asks the question of the address, once the clusters of the board are known. */
    begin() {
      if (query.drain || (query.quota && pods)) request();
    },
    close() {
      abort?.abort();
    },
  };
}

/** What a drain does to the ReplicaSets of the answer, which are all of them unless there are more. */
function drainSentence({ node }, sets, areMore) {
  if (sets.length === 0) return `A drain of ${node} affects no ReplicaSet: no active pod of one is known there.`;
  const sum = (field) => sets.reduce((all, set) => all + set[field], 0);
  return `A drain of ${node} deletes ${areMore ? 'at least ' : ''}${count(sum('deleted'), 'pod')} of ${count(sets.length, 'ReplicaSet')}, which then lack ${count(sum('creates'), 'pod')}. Disruption budgets are not known to the server.`;
}

function quotaSentence({ namespace, pods }, quota) {
  const [used, creates, refused] = [quota.pods, quota.creates, quota.refused].map(Number);
  const over = used - Number(pods);
  const lost = over >= 0 ? ` It deletes no pods, but a lost pod is not replaced before ${over === 0 ? '1 pod is' : `${(over + 1).toLocaleString('en')} pods are`} gone.` : '';
  const order = refused > 0 ? ' The order of creates is not defined: “Refused” is the least and the most of a ReplicaSet.' : '';
  return `A quota of ${count(Number(pods), 'pod')} in ${namespace} refuses ${refused.toLocaleString('en')} of ${count(creates, 'create')}; ${count(used, 'pod')} ${used === 1 ? 'counts' : 'count'} now.${lost}${order}`;
}

function podsOf({ deleted, deletedPods }) {
  const more = deleted - deletedPods.length;
  return `${deletedPods.join(', ')}${more > 0 ? ` and ${more.toLocaleString('en')} more` : ''}`;
}

function refusedOf({ refusedMin, refusedMax }) {
  return refusedMin === refusedMax ? refusedMax : `${refusedMin} to ${refusedMax}`;
}
