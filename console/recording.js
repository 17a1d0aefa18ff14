// The steps of a recording, as `decree replay --console` serves them.

import { h, setText } from './dom.js';

/** The maximum number of ReplicaSets in the table. Those of the current step come first. */
const ROWS_MAX = 100;
/** The counts of a ReplicaSet, in the order of the answer. */
const COUNTS = ['Desired', 'Current', 'Ready', 'Terminating', 'In flight'];

const main = document.getElementById('main');

/** Shows the steps in `main`. Each step has only its changes, so both directions are fast. */
function show({ about, steps }) {
  let at = 0;
  /** The counts of each ReplicaSet after step `at`. */
  const counts = new Map();

  const slider = h('input', { id: 'step', type: 'range', min: 1, max: steps.length, value: 1, 'aria-describedby': 'step-title', oninput: () => go(Number(slider.value) - 1) });
  const [first, previous, next, last] = [['First', () => 0], ['Previous', () => at - 1], ['Next', () => at + 1], ['Last', () => steps.length - 1]].map(([text, to]) => h('button', { type: 'button', onclick: () => go(to()) }, text));
  const number = h('span', { class: 'numbers' });
  const title = h('h2', { id: 'step-title', 'aria-live': 'polite' });
  const time = h('p', { class: 'dim' });
  const input = h('ul', { class: 'lines', id: 'came', tabindex: 0 });
  const answer = h('ul', { class: 'lines', id: 'answers', tabindex: 0 });
  const rows = h('tbody', {});
  const table = h('table', {}, h('thead', {}, h('tr', {}, ['ReplicaSet', ...COUNTS].map((text) => h('th', { scope: 'col' }, text)))), rows);
  const more = h('p', { class: 'dim' });
  const player = h('section', { class: 'panel player', 'aria-labelledby': 'step-title' }, h('div', { class: 'slider' }, first, previous, next, last, h('label', { for: 'step' }, 'Step'), slider, number), title, time,
    h('h3', {}, 'Input'), input, h('h3', {}, 'Answer of the server'), answer,
    h('h3', { id: 'counts-title' }, 'ReplicaSets, before → after'), h('div', { class: 'wide', tabindex: 0, role: 'region', 'aria-labelledby': 'counts-title' }, table), more);
  main.replaceChildren(h('section', { class: 'page' }, h('h1', {}, 'Recording'), h('div', { id: 'summary' }, about.map((text) => h('p', { class: 'summary' }, `${text}.`))), player));

  function go(to) {
    const target = Math.min(Math.max(to, 0), steps.length - 1);
    while (at < target) {
      at += 1;
      apply(1);
    }
    while (at > target) {
      apply(0);
      at -= 1;
    }
    draw();
  }

  /** Takes the counts before (0) or after (1) the current step. */
  function apply(side) {
    for (const [name, change] of Object.entries(steps[at].changes)) counts.set(name, change[side]);
  }

  function draw() {
    const step = steps[at];
    slider.value = at + 1;
    slider.setAttribute('aria-valuetext', `Step ${at + 1} of ${steps.length}: ${step.title}`);
    setText(number, `${(at + 1).toLocaleString('en')} of ${steps.length.toLocaleString('en')}`);
    setText(title, step.title);
    setText(time, `${new Date(step.time).toISOString()}, ${((step.time - steps[0].time) / 1000).toFixed(3)} s after the beginning`);
    list(input, step.input, 'No other input.');
    list(answer, step.answer, 'Nothing.');
    first.disabled = at === 0;
    previous.disabled = at === 0;
    next.disabled = at === steps.length - 1;
    last.disabled = at === steps.length - 1;
    drawTable(step.changes);
  }

  function list(element, lines, none) {
    element.replaceChildren(...(lines.length > 0 ? lines : [none]).map((line) => h('li', {}, line)));
  }

  function drawTable(changes) {
    const all = [...counts].filter(([name, numbers]) => name in changes || numbers.some((one) => one !== 0));
    all.sort(([a], [b]) => Number(b in changes) - Number(a in changes) || (a < b ? -1 : 1));
    rows.replaceChildren(...all.slice(0, ROWS_MAX).map(([name, numbers]) => {
      const [before, after] = changes[name] ?? [numbers, numbers];
      const cells = COUNTS.map((_, column) => [before[column], after[column]]);
      return h('tr', {}, h('th', { scope: 'row', class: 'name' }, name), cells.map(([from, to]) => h('td', { class: from === to ? 'dim' : 'changed' }, from === to ? String(to) : `${from} → ${to}`)));
    }));
    const left = all.length - ROWS_MAX;
    setText(more, all.length === 0 ? 'None is known yet.' : left > 0 ? `and ${left.toLocaleString('en')} more.` : '');
  }

  apply(1);
  draw();
  slider.focus();
}

fetch('api/recording').then((answer) => answer.json()).then(show, () => {
  main.replaceChildren(h('div', { class: 'empty' }, h('h1', {}, 'Recording'), h('p', {}, 'The command does not answer. Run it again, and open the address that it prints.')));
});
