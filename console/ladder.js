// The list of rules that chose a pod, with the deciding rule marked.

import { h } from './dom.js';
import { LADDER, word } from './format.js';

export function makeLadder(name, reason) {
  const rule = word(reason?.rule ?? '', 'RULE_');
  const deciding = LADDER.findIndex(([id]) => id === rule);
  if (deciding < 0) {
    const text = rule === 'ALL_GO' ? 'Every active pod is deleted, so none was compared with another.' : (reason?.detail ?? 'The reason is not known.');
    return h('p', { class: 'ladder-note' }, h('strong', {}, name), ': ', text);
  }
  return h('ol', { class: 'ladder', 'aria-label': `Rules that chose ${name}` }, LADDER.map(([, title, text], at) => rung(at - deciding, title, text, reason.detail)));
}

function rung(side, title, text, detail) {
  const [kind, mark, said] =
    side < 0 ? ['equal', '=', 'did not set it apart'] : side > 0 ? ['unread', '·', 'was not needed'] : ['deciding', '▶', `decided: ${detail}`];
  return h('li', { class: kind, 'aria-current': side === 0 ? 'true' : null },
    h('span', { class: 'mark', 'aria-hidden': 'true' }, mark), h('span', {}, h('strong', {}, title), ' ', h('span', { class: 'said' }, said), h('span', { class: 'rule' }, text)));
}
