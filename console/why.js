// Why these pods: the victims of the last scale-down, each with the ladder of rules.

import { h, setText } from './dom.js';
import { clock, count } from './format.js';
import { makeLadder } from './ladder.js';
import { replaceQuery } from './route.js';

/** Returns the panel. */
export function makeWhy(query) {
  let last = null;
  let chosen = query.pod || '';

  const intro = h('p', { class: 'dim' });
  const picker = h('fieldset', { class: 'victims' });
  const ladder = h('div', { class: 'ladder-place' });
  const split = h('div', { class: 'split', hidden: true }, picker, ladder);
  const element = h('section', { class: 'panel why', 'aria-labelledby': 'why-title' }, h('h2', { id: 'why-title' }, 'Why these pods?'), intro, split);
  setText(intro, 'Nothing was deleted since the agent connected.');

  function choose(name) {
    chosen = name;
    replaceQuery({ pod: name });
    draw();
  }

  function draw() {
    const victim = last.targets.find((target) => target.name === chosen) ?? last.targets[0];
    ladder.replaceChildren(...(victim ? [makeLadder(victim.name, victim.reason)] : []));
  }

  function show() {
    const more = last.operations - last.targets.length;
    setText(intro, `${clock(Date.parse(last.time))}: ${count(last.operations, 'pod')} chosen, in this order${more > 0 ? `; the first ${last.targets.length} are shown` : ''}. ${last.reasons[0]?.detail ?? ''}`);
    if (!last.targets.some((target) => target.name === chosen)) chosen = last.targets[0]?.name ?? '';
    split.hidden = false;
    picker.replaceChildren(h('legend', { class: 'away' }, 'Victims'), ...last.targets.map((target, at) =>
      h('label', {}, h('input', { type: 'radio', name: 'victim', value: target.name, checked: target.name === chosen, onchange: () => choose(target.name) }), h('span', { class: 'order' }, `${at + 1}`), h('span', { class: 'pod' }, target.name))));
    draw();
  }

  return {
    element,
    /** Takes decisions, the newest first; the newest deletion among them is shown. */
    decisions(list) {
      const deletion = list.find((decision) => decision.action === 'delete');
      if (!deletion || (last && last.time >= deletion.time && last.batchId === deletion.batchId)) return;
      if (last && Date.parse(last.time) > Date.parse(deletion.time)) return;
      last = deletion;
      show();
    },
  };
}
