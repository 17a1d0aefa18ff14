// A recording, replayed step by step. The page reads the file and sends nothing to any server.

import { h, setText } from './dom.js';
import { count } from './format.js';
import { Unreadable, shown, steps, unpack } from './recorded.js';

/** The maximum number of ReplicaSets in the table. Those of the current step come first. */
const ROWS_MAX = 100;
const NUMBERS = [['wanted', 'Desired'], ['active', 'Current'], ['ready', 'Ready'], ['terminating', 'Terminating'], ['flight', 'In flight']];

/** Shows a recording in `main`, or asks for a file. */
export function showRecording(main, file) {
  let recording = null;
  let at = 0;
  /** The numbers of each ReplicaSet after step `at`. */
  const standing = new Map();
  let opening = 0;

  const input = h('input', { id: 'file', type: 'file', onchange: () => open(input.files[0]) });
  const drop = h('div', { class: 'drop panel', id: 'drop' }, h('label', { for: 'file' }, 'Drop a recording anywhere on this page, or choose a file'), input,
    h('p', { class: 'dim' }, 'It is read in this page, and nothing of it is sent. ', h('code', {}, 'decree-server --record'), ' makes recordings; files compressed with gzip are read too.'));
  const fault = h('p', { class: 'refusal', id: 'fault', role: 'alert' });
  const intro = h('p', { class: 'summary', id: 'summary' });
  const slider = h('input', { id: 'step', type: 'range', min: 1, max: 1, value: 1, 'aria-describedby': 'step-title', oninput: () => go(Number(slider.value) - 1) });
  const [first, previous, next, last] = [['First', () => 0], ['Previous', () => at - 1], ['Next', () => at + 1], ['Last', () => recording.steps.length - 1]].map(([text, to]) => h('button', { type: 'button', onclick: () => go(to()) }, text));
  const number = h('span', { class: 'numbers' });
  const title = h('h2', { id: 'step-title', 'aria-live': 'polite' });
  const time = h('p', { class: 'dim' });
  const came = h('ul', { class: 'lines', id: 'came' });
  const answers = h('ul', { class: 'lines', id: 'answers' });
  const rows = h('tbody', {});
  const table = h('table', {}, h('thead', {}, h('tr', {}, ['ReplicaSet', ...NUMBERS.map(([, text]) => text)].map((text) => h('th', { scope: 'col' }, text)))), rows);
  const more = h('p', { class: 'dim' });
  const player = h('section', { class: 'panel player', 'aria-labelledby': 'step-title' }, h('div', { class: 'slider' }, first, previous, next, last, h('label', { for: 'step' }, 'Step'), slider, number), title, time,
    h('h3', {}, 'Input'), came, h('h3', {}, 'Answer of the server'), answers,
    h('h3', { id: 'standing-title' }, 'ReplicaSets, before → after'), h('div', { class: 'wide', tabindex: 0, role: 'region', 'aria-labelledby': 'standing-title' }, table), more);
  player.hidden = true;
  fault.hidden = true;
  main.replaceChildren(h('section', { class: 'page' }, h('h1', {}, 'Recording'), drop, fault, intro, player));

  async function open(file) {
    if (!file) return;
    opening += 1;
    const mine = opening;
    fault.hidden = true;
    player.hidden = true;
    setText(intro, `Reading ${file.name}…`);
    try {
      const bytes = await unpack(file);
      if (mine !== opening) return;
      recording = steps(bytes);
    } catch (error) {
      if (mine !== opening) return;
      setText(intro, '');
      setText(fault, `${file.name}: ${error instanceof Unreadable ? error.message : 'It cannot be read.'}`);
      fault.hidden = false;
      if (!(error instanceof Unreadable)) window.reportError(error);
      return;
    }
    begin(file.name);
  }

  function begin(name) {
    const { hello, version, ending } = recording;
    setText(intro, `${name}: ${count(recording.steps.length, 'step')} of ${hello.agent_instance ?? 'an agent'} for ${hello.cluster_name || hello.cluster_uid}, recorded by version ${version}. ${ending}`);
    standing.clear();
    at = 0;
    slider.max = recording.steps.length;
    for (const [uid, { name: set, after }] of recording.steps[0].changes) standing.set(uid, { name: set, numbers: after });
    player.hidden = false;
    draw();
    slider.focus();
  }

  /** Goes to a step through all steps between. Each step has only its changes, so both directions are fast. */
  function go(to) {
    const wanted = Math.min(Math.max(to, 0), recording.steps.length - 1);
    while (at < wanted) {
      at += 1;
      for (const [uid, { name, after }] of recording.steps[at].changes) standing.set(uid, { name, numbers: after });
    }
    while (at > wanted) {
      for (const [uid, { name, before }] of recording.steps[at].changes) standing.set(uid, { name, numbers: before });
      at -= 1;
    }
    draw();
  }

  function draw() {
    const step = recording.steps[at];
    slider.value = at + 1;
    slider.setAttribute('aria-valuetext', `Step ${at + 1} of ${recording.steps.length}: ${step.title}`);
    setText(number, `${(at + 1).toLocaleString('en')} of ${recording.steps.length.toLocaleString('en')}`);
    setText(title, step.title);
    setText(time, `${new Date(step.time).toISOString()}, ${((step.time - recording.steps[0].time) / 1000).toFixed(3)} s after the beginning`);
    list(came, step.came, 'No other input.');
    list(answers, step.answers, 'Nothing.');
    first.disabled = at === 0;
    previous.disabled = at === 0;
    next.disabled = at === recording.steps.length - 1;
    last.disabled = at === recording.steps.length - 1;
    drawTable(step);
  }

  function list(element, lines, none) {
    const all = lines.length > 0 ? shown(lines) : [none];
    element.replaceChildren(...all.map((line) => h('li', {}, line)));
  }

  function drawTable(step) {
    const there = ([uid, { numbers }]) => step.changes.has(uid) || NUMBERS.some(([field]) => numbers[field] !== 0);
    const all = [...standing].filter(there);
    all.sort(([a, one], [b, other]) => Number(step.changes.has(b)) - Number(step.changes.has(a)) || (one.name < other.name ? -1 : 1));
    rows.replaceChildren(...all.slice(0, ROWS_MAX).map(([uid, { name, numbers }]) => {
      const change = step.changes.get(uid);
      const cells = NUMBERS.map(([field]) => {
        const [before, after] = change ? [change.before[field], change.after[field]] : [numbers[field], numbers[field]];
        return h('td', { class: before === after ? 'dim' : 'changed' }, before === after ? String(after) : `${before} → ${after}`);
      });
      return h('tr', {}, h('th', { scope: 'row', class: 'name' }, name || uid), cells);
    }));
    const left = all.length - ROWS_MAX;
    setText(more, all.length === 0 ? 'None is known yet.' : left > 0 ? `and ${left.toLocaleString('en')} more that did not change.` : '');
  }

  open(file);
  return { stream: null, begin() {}, event() {}, open, close() { opening += 1; } };
}
