// "Scale to n": the server's decision before a scale. The panel only asks; it changes nothing.

import { h, reconcile, setAttribute, setText } from './dom.js';
import { count, word } from './format.js';
import { replaceQuery } from './route.js';
import { ask } from './stream.js';

/** How long the slider must rest before the page asks the server, in milliseconds. */
const REST = 120;
const SHOWN_MAX = 100;
const REPLICAS_MAX = 2_147_483_647;

/** Creates the panel. It calls `mark` with the places of the victims by name and the size, and `pin` with a pod that a person selects. */
export function makeScale(subject, query, mark, pin) {
  let row = null;
  const isNumber = /^\d{1,10}$/.test(query.replicas ?? '') && Number(query.replicas) <= REPLICAS_MAX;
  let wanted = isNumber ? Number(query.replicas) : null;
  /** The invalid number of the address, if any. */
  let broken = query.replicas && !isNumber ? query.replicas : '';
  let timer = 0;
  let abort = null;

  const slider = h('input', { id: 'scale', type: 'range', min: 0, max: 10, value: 0, oninput: () => choose(slider.value) });
  const number = h('input', { id: 'scale-number', type: 'number', min: 0, max: REPLICAS_MAX, inputmode: 'numeric', 'aria-label': 'Scale to, as a number', oninput: () => number.value !== '' && choose(number.value) });
  const reset = h('button', { type: 'button', onclick: clear }, 'Reset');
  const answer = h('output', { for: 'scale scale-number', class: 'answer', id: 'answer' });
  const list = h('ol', { class: 'would', id: 'would', tabindex: 0, 'aria-label': 'Pods that would be deleted' });
  const element = h('section', { class: 'panel scale', 'aria-labelledby': 'scale-title' }, h('h2', { id: 'scale-title' }, 'What if?'),
    h('div', { class: 'slider' }, h('label', { for: 'scale' }, 'Scale to'), slider, number, reset), answer, list);

  function clear() {
    subject.costs = '';
    choose(null);
  }

  function choose(value) {
    wanted = value === null ? null : Math.min(REPLICAS_MAX, Math.max(0, Math.floor(Number(value)) || 0));
    broken = '';
    replaceQuery({ replicas: wanted ?? '', costs: subject.costs });
    sketch();
    clearTimeout(timer);
    timer = setTimeout(request, REST);
  }

  function sketch() {
    if (!row) return;
    slider.max = Math.max(10, 2 * row.replicas, row.active, wanted ?? 0);
    const value = String(wanted ?? row.replicas);
    if (slider.value !== value) slider.value = value;
    if (document.activeElement !== number && number.value !== value) number.value = value;
    reset.disabled = wanted === null && !subject.costs;
  }

  async function request() {
    abort?.abort();
    if (wanted === null) {
      showNone(broken ? `The link asks for “${broken}” replicas; a number from 0 to ${REPLICAS_MAX} is needed.` : 'Move the slider to see which pods would be deleted. This changes nothing.');
      return;
    }
    abort = new AbortController();
    try {
      const { decision } = await ask('simulate', { ...subject, replicas: wanted }, abort.signal);
      show(decision);
    } catch (error) {
      if (error.name !== 'AbortError') showNone(`No preview: ${error.message}.`);
    }
  }

  /** Says why there is no preview, and shows no victims of an earlier one. */
  function showNone(text) {
    setText(answer, text);
    list.replaceChildren();
    mark(new Map(), null);
  }

  function show(decision) {
    const { creates, deletes } = decision;
    const limited = decision.reasons.some((reason) => reason.rule === 'RULE_BURST_LIMITED') ? ' at first, and more after that' : '';
    const supposed = subject.costs ? `, with ${count(subject.costs.split(' ').length / 2, 'supposed cost')}` : '';
    const at = `At ${wanted}${supposed}`;
    if (decision.quarantined) setText(answer, `Nothing: ${decision.quarantined}.`);
    else if (deletes.length > 0) setText(answer, `${at}, ${count(deletes.length, 'pod')} would be deleted${limited}.`);
    else if (creates.length > 0) setText(answer, `${at}, ${count(creates.length, 'pod')} would be created${limited}.`);
    else setText(answer, `${at}, no pod would be created or deleted.`);
    const shown = deletes.slice(0, SHOWN_MAX);
    const left = deletes.length - shown.length;
    const rest = left > 0 ? [{ pod: { name: '' }, reason: { rule: '', detail: `and ${left.toLocaleString('en')} more` } }] : [];
    reconcile(list, [...shown, ...rest], (victim) => victim.pod.name, makeVictim, drawVictim);
    mark(new Map(deletes.map((victim, at) => [victim.pod.name, at + 1])), wanted);
  }

  function makeVictim({ pod: { name } }) {
    const rule = h('span', { class: 'rule' });
    const detail = h('span', { class: 'dim' });
    const open = name ? h('button', { type: 'button', class: 'pod', title: 'See what would keep it', onclick: () => pin(name) }, name) : null;
    return Object.assign(h('li', { class: name ? null : 'more' }, open, ' ', rule, ' ', detail), { rule, detail });
  }

  function drawVictim(element, { reason }) {
    setText(element.rule, word(reason.rule, 'RULE_'));
    setText(element.detail, reason.detail.split(', uid ')[0]);
    setAttribute(element.detail, 'title', reason.detail);
  }

  return {
    element,
    standing(summary) {
      const first = row === null;
      row = summary;
      sketch();
      if (first) request();
    },
    /** Asks again after the pods or the supposed costs have changed. */
    refresh() {
      sketch();
      clearTimeout(timer);
      if (wanted !== null) timer = setTimeout(request, REST);
    },
    close() {
      clearTimeout(timer);
      abort?.abort();
    },
  };
}
