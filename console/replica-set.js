// One ReplicaSet: how it stands, which pods would go, where they are, and what happened.

import { barText, drawBar, makeBar } from './bar.js';
import { h, setAttribute, setText } from './dom.js';
import { STATES, age, learnTime, now, sentence, stateOf } from './format.js';
import { makeNodes } from './nodes.js';
import { makeScale } from './scale.js';
import { makeTimeline } from './timeline.js';
import { makeWhy } from './why.js';

/** Shows a ReplicaSet in `main`. */
export function showReplicaSet(main, query, [cluster, namespace, name]) {
  const subject = { cluster, namespace, name };
  let standing = null;

  const bar = makeBar();
  const numbers = h('span', { class: 'numbers' });
  const mark = h('span', { class: 'mark', 'aria-hidden': 'true' });
  const state = h('span', {});
  const since = h('span', { class: 'dim' });
  const waits = h('p', { class: 'sentence', id: 'sentence' });
  const told = h('p', { class: 'refusal', id: 'failure', hidden: true });
  const head = h('header', { class: 'subject' },
    h('p', { class: 'crumbs' }, h('a', { href: '#/' }, 'Board'), ' / ', `${cluster} / ${namespace}`),
    h('h1', {}, name), h('p', { class: 'standing' }, bar, numbers, h('span', { class: 'state' }, mark, ' ', state), since), waits, told);
  const nodes = makeNodes();
  const scale = makeScale(subject, query, (victims) => nodes.mark(victims));
  const why = makeWhy(query);
  const timeline = makeTimeline();
  const body = h('div', { class: 'panels' }, why.element, scale.element, nodes.element, timeline.element);
  const empty = h('div', { class: 'empty', id: 'empty' }, h('h2', {}, 'Looking…'));
  body.hidden = true;
  main.replaceChildren(h('article', { class: 'replica-set' }, head, body, empty));
  document.title = `${namespace}/${name} · Decree`;

  function draw() {
    if (!standing) return;
    const row = standing.summary;
    const stands = stateOf(row);
    drawBar(bar, row);
    setText(numbers, barText(row));
    setAttribute(head, 'data-state', stands);
    setText(mark, STATES[stands]?.mark ?? '');
    setText(state, STATES[stands]?.word ?? stands);
    setText(since, row.unconvergedSince ? `unconverged for ${age(now() - Date.parse(row.unconvergedSince))}` : '');
    setText(waits, sentence(row));
    setText(told, row.failure ? `The cluster’s last refusal: ${row.failure}` : '');
    told.hidden = !row.failure;
  }

  function stand(found) {
    body.hidden = found === null;
    empty.hidden = found !== null;
    if (found === null) {
      setText(state, '');
      setText(mark, '');
      setText(waits, '');
      empty.replaceChildren(h('h2', {}, 'Not there'), h('p', {}, `No connected cluster that you may see has a ReplicaSet ${namespace}/${name}. It is shown here as soon as one has.`));
      if (standing) timeline.change('The ReplicaSet is gone');
      standing = null;
      return;
    }
    timeline.standing(standing, found);
    standing = found;
    why.decisions(found.decisions);
    scale.standing(found.summary);
    draw();
  }

  const second = setInterval(draw, 1000);
  return {
    stream: { view: 'replicaset', ...subject },
    begin() {},
    event(kind, data) {
      if (kind === 'ping') learnTime(data.seconds);
      if (kind === 'replicaset') stand(data);
      if (kind === 'pods') {
        timeline.pods(data);
        nodes.pods(data);
        scale.refresh();
      }
      if (kind === 'decision') {
        timeline.decision(data);
        if (data.decision) why.decisions([data.decision]);
      }
    },
    close() {
      clearInterval(second);
      scale.close();
    },
  };
}
