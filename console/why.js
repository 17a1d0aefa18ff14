// The last scale-down: the victims, and the rule that chose each.

import { h, setAttribute, setText } from './dom.js';
import { LADDER, count, fullTime, shorten, word } from './format.js';
import { makeLadder } from './ladder.js';
import { replaceQuery } from './route.js';

/** The number of characters shown of a value as long as a UID. */
const VALUE_MAX = 15;

export function makeWhy(query) {
  let last = null;
  let chosen = query.pod || '';
  let drawn = '';

  const title = h('h2', { id: 'why-title' }, 'Last scale-down');
  const intro = h('p', { class: 'dim', id: 'why' });
  const picker = h('fieldset', { class: 'victims' });
  const ladder = h('div', { class: 'ladder-place' });
  const split = h('div', { class: 'split', hidden: true }, picker, ladder);
  const ranks = h('div', { class: 'wide ranks', id: 'ranks', tabindex: 0, role: 'region', 'aria-label': 'Pods by rule', hidden: true });
  const same = h('p', { class: 'dim' });
  const element = h('section', { class: 'panel why', 'aria-labelledby': 'why-title' }, title, intro, split, ranks, same);

  function choose(name) {
    chosen = name;
    replaceQuery({ pod: name });
    draw();
  }

  function draw() {
    const victim = last.targets.find((target) => target.name === chosen) ?? last.targets[0];
    ladder.replaceChildren(...(victim ? [makeLadder(victim.name, victim.reason)] : []));
  }

  /** Shows a decision from a server that does not send the compared values. */
  function showDecision() {
    const more = last.operations - last.targets.length;
    setText(title, `Last scale-down, ${count(last.operations, 'pod')}`);
    setText(intro, `${fullTime(Date.parse(last.time))}, in the order of deletion${more > 0 ? `; the first ${last.targets.length} are shown` : ''}. ${last.reasons[0]?.detail ?? ''}`);
    if (!last.targets.some((target) => target.name === chosen)) chosen = last.targets[0]?.name ?? '';
    split.hidden = false;
    picker.replaceChildren(h('legend', { class: 'away' }, 'Deleted pods'), ...last.targets.map((target, at) =>
      h('label', {}, h('input', { type: 'radio', name: 'victim', value: target.name, checked: target.name === chosen, onchange: () => choose(target.name) }), h('span', { class: 'order' }, `${at + 1}`), h('span', { class: 'pod' }, target.name))));
    draw();
  }

  function showScaleDown({ time, from, to, chosen: total, pods }) {
    const victims = pods.filter((pod) => pod.chosen).length;
    const kept = pods.length - victims;
    setText(title, `Last scale-down ${from} → ${to}, ${count(total, 'pod')}`);
    const shown = `${victims < total ? `the last ${victims} of ${count(total, 'deleted pod')}` : count(victims, 'deleted pod')}${kept > 0 ? ` and the first ${kept} that stayed` : ''}`;
    setText(intro, `${fullTime(Date.parse(time))}: ${shown}, in the order of deletion.${kept > 0 ? '' : from > total ? ' The pods that stayed were not compared.' : ' Every pod was deleted.'}`);
    split.hidden = true;
    picker.replaceChildren();
    ladder.replaceChildren();
    ranks.hidden = false;
    setAttribute(element, 'data-wide', true);
    const { table, alike } = rankTable(pods, victims);
    ranks.replaceChildren(table);
    // The boundary between victims and other pods is the most important place of the table.
    const cut = table.querySelector('[data-cut]');
    ranks.scrollTop = cut ? cut.offsetTop - ranks.clientHeight / 2 : 0;
    setText(same, alike.length > 0 ? `The same for all of these pods: ${alike.join(', ')}.` : '');
  }

  /** Says that no deletion can be shown. It claims that there was none only if nothing suggests one. */
  function showNone(found) {
    const isKnown = found.timeline.some((entry) => (entry.decided ?? entry.answered)?.action === 'delete');
    setText(intro, isKnown ? 'The last deletion is no longer known.' : 'Nothing was deleted since the agent connected.');
  }

  function isOlder(deletion) {
    return last !== null && (Date.parse(last.time) > Date.parse(deletion.time) || (last.time === deletion.time && last.batchId === deletion.batchId));
  }

  /** Takes decisions, newest first, and shows the newest deletion among them. */
  function take(decisions) {
    const deletion = decisions.find((decision) => decision.action === 'delete');
    if (!deletion || isOlder(deletion)) return;
    last = deletion;
    if (ranks.hidden) showDecision();
  }

  return {
    element,
    decision(decision) {
      take([decision]);
    },
    standing(found) {
      if (found.lastScaleDown) {
        const signature = JSON.stringify(found.lastScaleDown);
        if (signature !== drawn) showScaleDown(found.lastScaleDown);
        drawn = signature;
        return;
      }
      take(found.decisions);
      if (!last && ranks.hidden) showNone(found);
    },
  };
}

/** Returns the table of pods by rules, and the rules on which all these pods tie. */
function rankTable(pods, victims) {
  const values = pods.map((pod) => new Map(pod.values.map(({ rule, value }) => [word(rule, 'RULE_'), value])));
  const deciding = new Set(pods.map((pod) => word(pod.reason?.rule ?? '', 'RULE_')));
  const tells = (rule) => deciding.has(rule) || new Set(values.map((of) => of.get(rule))).size > 1;
  const rules = LADDER.filter(([rule]) => tells(rule));
  const alike = LADDER.filter(([rule]) => !tells(rule) && values[0]?.has(rule)).map(([, title]) => title.toLowerCase());
  const head = h('tr', {}, h('th', { scope: 'col' }, 'Pod'), h('th', { scope: 'col' }, 'Result'), rules.map(([, title, text]) => h('th', { scope: 'col', title: text }, title)));
  const rows = pods.map((pod, at) => {
    const decided = word(pod.reason?.rule ?? '', 'RULE_');
    const cells = rules.map(([rule]) => {
      const value = values[at].get(rule) ?? '';
      const isDeciding = rule === decided;
      return h('td', { class: isDeciding ? 'deciding' : null, title: value.length > VALUE_MAX || isDeciding ? `${value}${isDeciding ? `: ${pod.reason.detail}` : ''}` : null }, isDeciding ? h('span', { class: 'mark', 'aria-label': 'decided', role: 'img' }, '▶') : null, shorten(value, VALUE_MAX));
    });
    return h('tr', { class: pod.chosen ? 'victim' : 'stayed', 'data-cut': at === victims && at > 0 }, h('th', { scope: 'row', class: 'pod' }, pod.name), h('td', {}, pod.chosen ? '✕ deleted' : '● stayed'), cells);
  });
  return { table: h('table', {}, h('thead', {}, head), h('tbody', {}, rows)), alike };
}
