// Pods on their nodes: each a chip whose mark says how it stands, the victims of a "what if" with their place in the order.

import { h, reconcile, setAttribute, setText } from './dom.js';
import { count } from './format.js';

const KINDS = {
  ready: ['●', 'ready'],
  unready: ['◐', 'not ready'],
  pending: ['○', 'pending'],
  unknown: ['?', 'unknown'],
  terminating: ['✕', 'terminating'],
  ended: ['■', 'ended'],
};

function kindOf(pod) {
  if (pod.terminating) return 'terminating';
  if (!pod.active) return 'ended';
  if (pod.ready) return 'ready';
  if (pod.phase === 'Unknown') return 'unknown';
  return pod.phase === 'Running' ? 'unready' : 'pending';
}

/** Returns the panel. */
export function makeNodes() {
  let known = { count: 0, pods: [] };
  let victims = null;

  const note = h('p', { class: 'dim' });
  const list = h('ul', { class: 'nodes', id: 'nodes' });
  const legend = h('p', { class: 'legend' }, Object.entries(KINDS).map(([kind, [mark, text]]) => h('span', {}, h('span', { class: `mark ${kind}`, 'aria-hidden': 'true' }, mark), ` ${text}`)));
  const element = h('section', { class: 'panel pods', 'aria-labelledby': 'pods-title' }, h('h2', { id: 'pods-title' }, 'Pods on their nodes'), note, list, legend);

  function draw() {
    const nodes = new Map();
    for (const pod of known.pods) {
      const node = pod.node ?? '';
      if (!nodes.has(node)) nodes.set(node, []);
      nodes.get(node).push(pod);
    }
    const sorted = [...nodes].sort(([a], [b]) => (a < b ? -1 : 1));
    const left = known.count - known.pods.length;
    setText(note, left > 0 ? `The first ${count(known.pods.length, 'pod')} by name; ${left.toLocaleString('en')} more are not shown.` : count(known.count, 'pod'));
    reconcile(list, sorted, ([node]) => `node ${node}`, makeNode, drawNode);
  }

  function makeNode([node]) {
    const total = h('span', { class: 'dim' });
    const chips = h('ul', { class: 'chips' });
    return Object.assign(h('li', {}, h('h3', {}, node || 'no node yet', ' ', total), chips), { total, chips });
  }

  function drawNode(element, [, pods]) {
    setText(element.total, String(pods.length));
    reconcile(element.chips, pods, (pod) => pod.name, makeChip, drawChip);
  }

  function makeChip() {
    const mark = h('span', { class: 'mark', 'aria-hidden': 'true' });
    const name = h('span', { class: 'pod' });
    const told = h('span', { class: 'told' });
    return Object.assign(h('li', { class: 'chip' }, mark, name, told), { mark, name, told });
  }

  function drawChip(chip, pod) {
    const kind = kindOf(pod);
    const [mark, text] = KINDS[kind];
    const order = victims?.get(pod.name);
    setAttribute(chip, 'data-kind', kind);
    setAttribute(chip, 'data-victim', order !== undefined);
    setText(chip.mark, mark);
    chip.mark.className = `mark ${kind}`;
    setText(chip.name, pod.name);
    const facts = [order === undefined ? '' : `goes as number ${order}`, kind === 'ready' ? '' : text, pod.deletionCost === 0 ? '' : `cost ${pod.deletionCost}`, pod.restarts === 0 ? '' : count(pod.restarts, 'restart')];
    setText(chip.told, facts.filter(Boolean).join(', '));
  }

  return {
    element,
    pods(found) {
      known = found ?? { count: 0, pods: [] };
      draw();
      if (found === null) setText(note, 'Its pods are not shown: there are more around it than a decision is made from.');
    },
    mark(marked) {
      victims = marked;
      draw();
    },
  };
}
