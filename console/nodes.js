// Pods by node, as small marks. The shape shows the state of a pod; the name appears on hover, or for all pods on demand.

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

/** The number of pods that are not ready. Nodes with the most such pods come first. */
const trouble = (pods) => pods.filter((pod) => kindOf(pod) !== 'ready').length;

export function makeNodes() {
  let known = { count: 0, pods: [] };
  let victims = null;
  let isNamed = false;
  /** The pod whose mark has the focus. All marks share one tab stop. */
  let current = '';

  const note = h('p', { class: 'dim' });
  const names = h('button', { type: 'button', id: 'names', 'aria-pressed': 'false', onclick: () => name(!isNamed) }, 'Show names');
  const told = h('p', { class: 'told-pod', id: 'told-pod', role: 'status' });
  const list = h('ul', { class: 'nodes', id: 'nodes' });
  const legend = h('p', { class: 'legend' }, Object.entries(KINDS).map(([kind, [mark, text]]) => h('span', {}, h('span', { class: `mark ${kind}`, 'aria-hidden': 'true' }, mark), ` ${text}`)));
  const element = h('section', { class: 'panel pods', 'aria-labelledby': 'pods-title' }, h('h2', { id: 'pods-title' }, 'Pods by node'), h('div', { class: 'slider' }, note, names), list, told, legend);
  list.addEventListener('keydown', move);
  list.addEventListener('focusin', (event) => tell(event.target.closest('.chip')));
  list.addEventListener('pointerover', (event) => tell(event.target.closest('.chip')));

  function name(wanted) {
    isNamed = wanted;
    setAttribute(names, 'aria-pressed', isNamed);
    draw();
  }

  function tell(chip) {
    if (!chip) return;
    current = chip.dataset.key;
    setText(told, chip.getAttribute('aria-label'));
  }

  function move(event) {
    const chip = event.target.closest('.chip');
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, Home: -Infinity, End: Infinity }[event.key];
    if (!chip || step === undefined) return;
    event.preventDefault();
    const chips = [...list.querySelectorAll('.chip')];
    const to = chips[Math.min(chips.length - 1, Math.max(0, chips.indexOf(chip) + step))];
    setAttribute(chip, 'tabindex', -1);
    setAttribute(to, 'tabindex', 0);
    to.focus();
  }

  function draw() {
    const nodes = new Map();
    for (const pod of known.pods) {
      const node = pod.node ?? '';
      if (!nodes.has(node)) nodes.set(node, []);
      nodes.get(node).push(pod);
    }
    const sorted = [...nodes].sort(([a, one], [b, other]) => trouble(other) - trouble(one) || (a < b ? -1 : 1));
    if (!known.pods.some((pod) => pod.name === current)) current = sorted[0]?.[1][0].name ?? '';
    const left = known.count - known.pods.length;
    setText(note, left > 0 ? `The first ${count(known.pods.length, 'pod')} by name; ${left.toLocaleString('en')} more are not shown.` : count(known.count, 'pod'));
    setAttribute(list, 'data-named', isNamed);
    reconcile(list, sorted, ([node]) => `node ${node}`, makeNode, drawNode);
    const chip = list.querySelector('.chip[tabindex="0"]');
    if (told.textContent && chip) setText(told, chip.getAttribute('aria-label'));
  }

  function makeNode([node]) {
    const total = h('span', { class: 'dim' });
    const chips = h('ul', { class: 'chips' });
    return Object.assign(h('li', {}, h('h3', {}, node || 'No node yet', ' ', total), chips), { total, chips });
  }

  function drawNode(element, [, pods]) {
    const number = trouble(pods);
    setText(element.total, number > 0 ? `${pods.length}, ${number} not ready` : String(pods.length));
    reconcile(element.chips, pods, (pod) => pod.name, makeChip, drawChip);
  }

  function makeChip() {
    const mark = h('span', { class: 'mark', 'aria-hidden': 'true' });
    const name = h('span', { class: 'pod', 'aria-hidden': 'true' });
    const told = h('span', { class: 'told', 'aria-hidden': 'true' });
    return Object.assign(h('li', { class: 'chip' }, mark, name, told), { mark, name, told });
  }

  function drawChip(chip, pod) {
    const kind = kindOf(pod);
    const [mark, text] = KINDS[kind];
    const order = victims?.get(pod.name);
    const facts = [order === undefined ? '' : `number ${order} to be deleted`, text, pod.deletionCost === 0 ? '' : `deletion cost ${pod.deletionCost}`, pod.restarts === 0 ? '' : count(pod.restarts, 'restart')].filter(Boolean).join(', ');
    setAttribute(chip, 'data-kind', kind);
    setAttribute(chip, 'data-victim', order !== undefined);
    setAttribute(chip, 'aria-label', `${pod.name}: ${facts}`);
    setAttribute(chip, 'title', `${pod.name}: ${facts}`);
    setAttribute(chip, 'tabindex', pod.name === current ? 0 : -1);
    setText(chip.mark, mark);
    chip.mark.className = `mark ${kind}`;
    setText(chip.name, isNamed ? pod.name : '');
    setText(chip.told, isNamed && facts !== 'ready' ? facts : '');
  }

  return {
    element,
    pods(found) {
      known = found ?? { count: 0, pods: [] };
      draw();
      if (found === null) setText(note, 'The page does not show the pods: a decision would read more objects than the server’s limit.');
    },
    mark(marked) {
      victims = marked;
      draw();
    },
  };
}
