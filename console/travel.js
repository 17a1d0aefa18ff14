// Earlier states of a ReplicaSet, from the server's history and from this page.

import { h, setAttribute, setText } from './dom.js';
import { clock, fullTime } from './format.js';

/** The maximum number of counts that the page keeps. */
const SAMPLES_MAX = 500;

/** Creates a slider over the times of the timeline. It calls `show` with the chosen time, or with null for now. */
export function makeTravel(show) {
  /** The counts since the page was opened, each with its start time. */
  let samples = [];
  let entries = [];
  let moments = [];
  let chosen = null;

  const slider = h('input', { id: 'travel', type: 'range', min: 0, max: 0, value: 0, oninput: () => go(Number(slider.value)) });
  const back = h('button', { type: 'button', onclick: () => go(moments.length) }, 'Now');
  const told = h('output', { for: 'travel', class: 'answer', id: 'traveled' });
  const element = h('div', { class: 'travel', hidden: true }, h('div', { class: 'slider' }, h('label', { for: 'travel' }, 'Time'), slider, back), told);

  function go(index) {
    chosen = moments[index] ?? null;
    draw();
    show(chosen);
  }

  function draw() {
    element.hidden = moments.length === 0;
    slider.max = moments.length;
    const index = chosen === null ? moments.length : moments.findLastIndex((time) => time <= chosen);
    if (Number(slider.value) !== index) slider.value = index;
    back.disabled = chosen === null;
    const text = chosen === null ? 'Move the slider to see an earlier time.' : describe(chosen);
    setText(told, text);
    setAttribute(told, 'title', chosen === null ? '' : fullTime(chosen));
    setAttribute(slider, 'aria-valuetext', chosen === null ? 'Now' : text);
  }

  function describe(time) {
    const counts = samples.findLast((sample) => sample.time <= time);
    const parts = counts ? [`${counts.replicas} desired, ${counts.active} current, ${counts.ready} ready`] : [desired(time), 'current pods not known, as the page was not open'];
    const decision = entries.find((entry) => entry.lane === 'decision' && entry.time <= time);
    return `${clock(time)}: ${parts.filter(Boolean).join(', ')}.${decision ? ` Last decision: ${decision.text}${decision.detail ? `, ${decision.detail}` : ''}.` : ''}`;
  }

  /** Returns the desired number at a time, from the changes before and after it. */
  function desired(time) {
    const changes = entries.filter((entry) => entry.scaled);
    const before = changes.find((entry) => entry.time <= time);
    const after = changes.findLast((entry) => entry.time > time);
    const number = before ? before.scaled.desired : after?.scaled.previous;
    return number == null ? '' : `${number} desired`;
  }

  return {
    element,
    see({ replicas, active, ready }, time) {
      const last = samples.at(-1);
      if (last && last.replicas === replicas && last.active === active && last.ready === ready) return;
      samples = [...samples, { time, replicas, active, ready }].slice(-SAMPLES_MAX);
    },
    /** Takes the entries of the timeline, newest first. */
    entries(list) {
      entries = list;
      moments = [...new Set([...samples, ...entries].map(({ time }) => time))].sort((a, b) => a - b);
      if (chosen !== null && chosen < moments[0]) chosen = null;
      draw();
    },
  };
}
