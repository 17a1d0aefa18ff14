// The last scale-down: the victims, and the rule that chose each.

import { h, setText } from './dom.js';
import { LADDER, count, fullTime, shorten, word } from './format.js';

/** The number of characters shown of a value as long as a UID. */
const VALUE_MAX = 15;

export function makeWhy() {
  /** The newest deletion, for sessions so large that the server keeps no values of its pods. */
  let last = null;
  let drawn = '';

  const title = h('h2', { id: 'why-title' }, 'Last scale-down');
  const intro = h('p', { class: 'dim', id: 'why' });
  const ranks = h('div', { class: 'wide ranks', id: 'ranks', tabindex: 0, role: 'region', 'aria-label': 'Pods by rule', hidden: true });
  const same = h('p', { class: 'dim', hidden: true });
  const element = h('section', { class: 'panel why', 'aria-labelledby': 'why-title' }, h('div', { class: 'panel-head' }, title, intro), ranks, same);

  function showScaleDown({ decideTime, previous, desired, chosen: total, pods, costs }) {
    const victims = pods.filter((pod) => pod.chosen).length;
    const kept = pods.length - victims;
    setText(title, `Last scale-down ${previous} → ${desired}, ${count(total, 'pod')}`);
    const shown = `${victims < total ? `the last ${victims} of ${count(total, 'deleted pod')}` : count(victims, 'deleted pod')}${kept > 0 ? ` and the first ${kept} that stayed` : ''}`;
    setText(intro, `${fullTime(Date.parse(decideTime))}: ${shown}, in the order of deletion.${kept > 0 ? '' : previous > total ? ' The pods that stayed were not compared.' : ' Every pod was deleted.'}${costs ? ` The server ${costs}.` : ''}`);
    ranks.hidden = false;
    const { table, alike } = rankTable(pods, victims);
    ranks.replaceChildren(table);
    // The boundary between victims and other pods is the most important place of the table.
    const cut = table.querySelector('[data-cut]');
    ranks.scrollTop = cut ? cut.offsetTop - ranks.clientHeight / 2 : 0;
    same.hidden = alike.length === 0;
    setText(same, `The same for all of these pods: ${alike.join(', ')}.`);
  }

  /** Says that no table can be shown. It claims that there was no deletion only if nothing suggests one. */
  function showNone({ timeline }) {
    const isKnown = timeline.some((entry) => (entry.decided ?? entry.answered)?.action === 'ACTION_DELETE');
    if (last) setText(intro, `${fullTime(Date.parse(last.decideTime))}: ${count(last.operations, 'pod')}, first ${last.targets.slice(0, 4).map((pod) => pod.name).join(', ')}.`);
    else setText(intro, isKnown ? 'The last deletion is no longer known.' : 'None since the agent connected.');
  }

  return {
    element,
    standing(found) {
      last = found.decisions.find((decision) => decision.action === 'ACTION_DELETE') ?? last;
      if (!found.lastScaleDown) {
        if (ranks.hidden) showNone(found);
        return;
      }
      const signature = JSON.stringify(found.lastScaleDown);
      if (signature !== drawn) showScaleDown(found.lastScaleDown);
      drawn = signature;
    },
  };
}

/** Returns what a rule compares of a value: of a node, the number of pods, without the node. */
function compared(rule, value = '') {
  return rule.endsWith('_NODE') ? value.split(' ')[0] : value;
}

function titleOf(rule) {
  return LADDER.find(([known]) => known === rule)?.[1] ?? '';
}

/** Returns the table of pods by rules, and the rules on which all these pods tie. */
function rankTable(pods, victims) {
  const values = pods.map((pod) => new Map(pod.values.map(({ rule, value }) => [word(rule, 'RULE_'), value])));
  const deciding = new Set(pods.map((pod) => word(pod.reason?.rule ?? '', 'RULE_')));
  const tells = (rule) => deciding.has(rule) || new Set(values.map((of) => compared(rule, of.get(rule)))).size > 1;
  const applied = [...(values[0]?.keys() ?? [])];
  const ladder = LADDER.filter(([rule]) => applied.includes(rule)).sort(([a], [b]) => applied.indexOf(a) - applied.indexOf(b));
  const rules = ladder.filter(([rule]) => tells(rule));
  const alike = ladder.filter(([rule]) => !tells(rule)).map(([, title]) => title.toLowerCase());
  const head = h('tr', {}, h('th', { scope: 'col' }, 'Pod'), h('th', { scope: 'col' }, 'Result'), rules.map(([, title, text]) => h('th', { scope: 'col', title: text }, title)));
  const rows = pods.map((pod, at) => {
    const decided = word(pod.reason?.rule ?? '', 'RULE_');
    const cells = rules.map(([rule]) => {
      const value = values[at].get(rule) ?? '';
      const isDeciding = rule === decided;
      return h('td', { class: isDeciding ? 'deciding' : null, title: value.length > VALUE_MAX || isDeciding ? `${value}${isDeciding ? `: ${pod.reason.detail}` : ''}` : null }, isDeciding ? h('span', { class: 'mark', 'aria-label': 'decided', role: 'img' }, '▶') : null, shorten(value, VALUE_MAX));
    });
    return h('tr', { class: pod.chosen ? 'victim' : 'stayed', 'data-cut': at === victims && at > 0 }, h('th', { scope: 'row', class: 'pod' }, pod.name), h('td', {}, pod.chosen ? '✕ deleted' : '● stayed', h('span', { class: 'by' }, titleOf(decided))), cells);
  });
  return { table: h('table', {}, h('thead', {}, head), h('tbody', {}, rows)), alike };
}
