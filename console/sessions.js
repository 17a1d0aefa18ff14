// The sessions: the connected agents, the ages of their views, and how near they are to their limits.

import { makeCommand } from './copy.js';
import { h, reconcile, setText } from './dom.js';
import { age, bytes, now, word } from './format.js';
import { hasToken } from './stream.js';

const FACTS = ['Agent', 'Identity', 'Epoch', 'Mode', 'Connected for', 'Lists', 'Age of view', 'ReplicaSets', 'Batches in flight', 'Quarantined'];

/** What the page showed last. */
let last = null;

export function showSessions(main) {
  let known = last;
  const intro = h('p', { class: 'summary', id: 'summary' });
  const overall = h('div', { class: 'gauges' });
  const list = h('ul', { class: 'sessions', id: 'sessions' });
  const empty = h('div', { class: 'empty', id: 'empty' }, h('h2', {}, 'Loading…'));
  main.replaceChildren(h('section', { class: 'page' }, h('h1', {}, 'Sessions'), intro, overall, list, empty));
  const second = setInterval(draw, 1000);
  draw();

  function draw() {
    if (!known) return;
    const { limits, sessions, version } = known;
    setText(intro, `Server ${version}.${hasToken() ? ' Showing only the clusters that you have access to.' : ''}`);
    const held = sessions.reduce((sum, one) => sum + Number(one.session.memoryBytes), 0);
    const gauges = [['Sessions', sessions.length, limits.sessions, String], ['Memory of sessions', held, limits.memory, bytes]];
    reconcile(overall, gauges, ([name]) => name, makeGauge, drawGauge);
    empty.hidden = sessions.length > 0;
    if (sessions.length === 0) empty.replaceChildren(h('h2', {}, 'No agent is connected'), h('p', {}, 'To see the ReplicaSets of your cluster, and change nothing: ', makeCommand('decree up --cluster kubernetes')));
    reconcile(list, sessions, (one) => one.session.sessionId, makeSession, drawSession);
  }

  function makeSession() {
    const heading = h('h2', {});
    const under = h('p', { class: 'dim' });
    const values = FACTS.map(() => h('dd', {}));
    const gauges = h('div', { class: 'gauges' });
    return Object.assign(h('li', { class: 'panel' }, heading, under, h('dl', {}, FACTS.map((fact, at) => h('div', {}, h('dt', {}, fact), values[at]))), gauges), { heading, under, values, gauges });
  }

  function drawSession(element, { session, beside }) {
    setText(element.heading, session.clusterName || session.clusterUid);
    setText(element.under, `uid ${session.clusterUid}${session.shard ? `, shard ${session.shard}` : ', whole cluster'}`);
    const heard = session.age ? `, ${age(parseFloat(session.age) * 1000)} ago` : '';
    const view = session.viewAge ? `${parseFloat(session.viewAge).toFixed(1)} s at the last heartbeat${heard}` : `unknown${heard}`;
    const texts = [session.agentInstance, beside.identity ?? 'unknown', session.epoch, word(session.mode, 'MODE_').toLowerCase().replace('_', '-'),
      session.startTime ? age(now() - Date.parse(session.startTime)) : '', session.synced ? 'complete' : 'incomplete', view, session.replicaSets, session.batchesInFlight, String(beside.quarantined)];
    for (const [at, text] of texts.entries()) setText(element.values[at], String(text));
    const objects = Number(session.pods) + Number(session.replicaSets);
    const gauges = [['Pods and ReplicaSets', objects, Number(session.objectsMax), (number) => number.toLocaleString('en')], ['Memory', Number(session.memoryBytes), Number(session.memoryBytesMax), bytes]];
    reconcile(element.gauges, gauges, ([name]) => name, makeGauge, drawGauge);
  }

  return {
    stream: { view: 'sessions' },
    isKept: known !== null,
    begin() {},
    event(name, data) {
      if (name !== 'sessions') return;
      known = last = data;
      draw();
    },
    close() {
      clearInterval(second);
    },
  };
}

let gaugeNumber = 0;

function makeGauge([name]) {
  gaugeNumber += 1;
  const id = `gauge-${gaugeNumber}`;
  const text = h('span', { class: 'numbers' });
  const meter = h('meter', { id, min: 0, max: 1, low: 0.7, high: 0.9, optimum: 0 });
  return Object.assign(h('div', { class: 'gauge' }, h('label', { for: id }, name), meter, text), { text, meter });
}

function drawGauge(element, [, value, max, write]) {
  const share = max > 0 ? value / max : 0;
  element.meter.value = Math.min(1, share);
  const percent = share > 0 && share < 0.01 ? 'under 1' : String(Math.round(share * 100));
  setText(element.text, `${write(value)} of ${write(max)}, ${percent} %`);
}
