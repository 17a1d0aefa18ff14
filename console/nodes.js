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

/** Returns the mark of a pod's state, its name, and its word with what the pod waits for. */
export function stateOf(pod) {
  const kind = kindOf(pod);
  const [mark, text] = KINDS[kind];
  return [kind, mark, pod.waiting ? `${text}: ${pod.waiting}` : text];
}

/** The number of pods that are not ready. Nodes with the most such pods come first. */
const trouble = (pods) => pods.filter((pod) => kindOf(pod) !== 'ready').length;

/** Creates the panel. It calls `pin` with the name of a pod that a person selects. */
export function makeNodes(pin) {
  let known = { count: 0, pods: [] };
  /** Whether the server does not show the pods. */
  let isWithheld = false;
  /** The victims of the preview, by name, with their places. */
  let victims = new Map();
  let pinned = '';
  let isNamed = false;
  /** The pod whose mark has the focus. All marks share one tab stop. */
  let current = '';

  const note = h('span', { class: 'dim', id: 'pods-note' });
  const names = h('button', { type: 'button', id: 'names', 'aria-pressed': 'false', onclick: () => name(!isNamed) }, 'Names');
  const told = h('p', { class: 'told-pod', id: 'told-pod' });
  const list = h('ul', { class: 'nodes', id: 'nodes' });
  const legend = h('ul', { class: 'legend' });
  const element = h('section', { class: 'panel pods', 'aria-labelledby': 'pods-title' },
    h('div', { class: 'panel-head' }, h('h2', { id: 'pods-title' }, 'Pods by node'), note, names), list, h('div', { class: 'legend' }, legend, told));
  list.addEventListener('keydown', move);
  list.addEventListener('focusin', (event) => tell(event.target.closest('.chip')));
  list.addEventListener('pointerover', (event) => tell(event.target.closest('.chip')));
  list.addEventListener('click', (event) => {
    const chip = event.target.closest('.chip');
    if (chip) pin(nameOf(chip));
  });

  const nameOf = (chip) => chip.parentElement.dataset.key;

  function name(wanted) {
    isNamed = wanted;
    setAttribute(names, 'aria-pressed', isNamed);
    draw();
  }

  function tell(chip) {
    if (!chip) return;
    current = nameOf(chip);
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
    if (isWithheld) setText(note, 'Not shown: a decision would read more objects than the server’s limit.');
    else setText(note, left > 0 ? `first ${known.pods.length.toLocaleString('en')} of ${known.count.toLocaleString('en')} by name` : count(known.count, 'pod'));
    setAttribute(list, 'data-named', isNamed);
    reconcile(list, sorted, ([node]) => `node ${node}`, makeNode, (item, node) => drawNode(item, node, left > 0));
    drawLegend();
    const chip = list.querySelector('.chip[tabindex="0"]');
    if (told.textContent) setText(told, chip?.getAttribute('aria-label') ?? '');
  }

  /** Explains the marks that the list has. */
  function drawLegend() {
    const there = new Set(known.pods.map(kindOf));
    const shown = Object.entries(KINDS).filter(([kind]) => there.has(kind));
    if (victims.size > 0) shown.push(['victim', [h('span', { class: 'struck' }), 'would be deleted']]);
    const signature = String(shown.map(([kind]) => kind));
    if (legend.dataset.shown === signature) return;
    legend.dataset.shown = signature;
    legend.replaceChildren(...shown.map(([kind, [mark, text]]) => h('li', {}, h('span', { class: `mark ${kind}`, 'aria-hidden': 'true' }, mark), ` ${text}`)));
  }

  function makeNode([node]) {
    const total = h('span', { class: 'dim' });
    const chips = h('ul', { class: 'chips' });
    return Object.assign(h('li', {}, h('h3', {}, node || 'No node yet', ' ', total), chips), { total, chips });
  }

  function drawNode(element, [, pods], isPart) {
    const [number, struck] = [trouble(pods), pods.filter((pod) => victims.has(pod.name)).length];
    const [all, left] = [pods.length, pods.length - struck].map((pods) => pods.toLocaleString('en'));
    setText(element.total, `${all}${struck > 0 ? ` → ${left}` : ''}${isPart ? ' of these' : ''}${number > 0 ? `, ${number} not ready` : ''}`);
    reconcile(element.chips, pods, (pod) => pod.name, makeChip, drawChip);
  }

  function makeChip() {
    const [mark, name, told] = ['mark', 'pod', 'told'].map((kind) => h('span', { class: kind, 'aria-hidden': 'true' }));
    const chip = h('button', { type: 'button', class: 'chip' }, mark, name, told);
    return Object.assign(h('li', {}, chip), { chip, mark, name, told });
  }

  function drawChip({ chip, mark, name, told: facts }, pod) {
    const [kind, sign, text] = stateOf(pod);
    const order = victims.get(pod.name);
    const said = [order === undefined ? '' : `number ${order} to be deleted`, text, pod.deletionCost === 0 ? '' : `deletion cost ${pod.deletionCost}`, pod.restarts === 0 ? '' : count(pod.restarts, 'restart')].filter(Boolean).join(', ');
    setAttribute(chip, 'data-kind', kind);
    setAttribute(chip, 'data-victim', order !== undefined);
    setAttribute(chip, 'aria-pressed', pod.name === pinned);
    setAttribute(chip, 'aria-label', `${pod.name}: ${said}`);
    setAttribute(chip, 'tabindex', pod.name === current ? 0 : -1);
    setText(mark, sign);
    mark.className = `mark ${kind}`;
    setText(name, isNamed ? pod.name : '');
    setText(facts, isNamed && said !== 'ready' ? said : '');
  }

  return {
    element,
    pods(found) {
      isWithheld = found === null;
      known = found ?? { count: 0, pods: [] };
      draw();
    },
    mark(marked) {
      victims = marked;
      draw();
    },
    /** Marks the pod of the card, or none. */
    pinned(name, isClosed = false) {
      pinned = name;
      draw();
      if (isClosed) list.querySelector('.chip[tabindex="0"]')?.focus();
    },
  };
}
