// The page of one ReplicaSet: its state, the victims of a scale-down, its nodes and its timeline.

import { barText, drawBar, makeBar } from './bar.js';
import { SEVERITIES, causeOf, commandOf, fillBadge, makeBadge, nextAttempt, severityOf, watchedIn } from './cause.js';
import { makeCommand } from './copy.js';
import { h, setAttribute, setText } from './dom.js';
import { age, count, fullTime, learnTime, now } from './format.js';
import { makeNodes } from './nodes.js';
import { makePod } from './pod.js';
import { hashOf, lastBoard } from './route.js';
import { makeScale } from './scale.js';
import { makeTimeline } from './timeline.js';
import { makeTravel } from './travel.js';
import { makeWhy } from './why.js';

/** How long the page waits for an agent after a reconnect. */
const ABSENT_MAX = 60_000;
/** What the page showed last, and its address. */
let shown = { key: '' };

export function showReplicaSet(main, query, [cluster, namespace, name]) {
  /** With the supposed costs, as in the address: the words are a pod, its cost, and so on. */
  const subject = { cluster, namespace, name, costs: query.costs ?? '' };
  let standing = null;
  let around = null;
  /** Until when the page keeps its data after a reconnect, because the agent may not be back yet. */
  let keptUntil = 0;
  /** Whether the server does not know the ReplicaSet, and the page shows what was known before. It says so only once. */
  let isAbsent = false;

  const bar = makeBar();
  const numbers = h('span', { class: 'numbers' });
  const mark = h('span', { class: 'mark', 'aria-hidden': 'true' });
  const state = h('span', {});
  const badge = makeBadge();
  const since = h('time', { class: 'dim' });
  const sentence = h('p', { class: 'sentence', id: 'sentence' });
  const family = h('p', { class: 'family dim', id: 'family', hidden: true });
  const next = makeCommand();
  next.id = 'next';
  const words = h('p', { class: 'refusal', id: 'failure' });
  const told = h('details', { class: 'words', hidden: true }, h('summary', {}, 'Message of the cluster'), words);
  const head = h('header', { class: 'subject' },
    h('p', { class: 'crumbs' }, h('a', { href: lastBoard() }, 'Board'), ' / ', `${cluster} / ${namespace}`),
    h('div', { class: 'standing' }, h('h1', {}, name), h('span', { class: 'state' }, mark, ' ', state), badge, numbers, bar, since), family, sentence, next, told);
  const pod = makePod(subject, query, (chosen, isClosed) => nodes.pinned(chosen, isClosed), () => scale.refresh());
  const nodes = makeNodes(pod.pin);
  const scale = makeScale(subject, query, preview, pod.pin);
  const why = makeWhy();
  const travel = makeTravel((time) => timeline.travel(time));
  const timeline = makeTimeline(travel);
  const body = h('div', { class: 'panels' }, h('div', { class: 'beside' }, nodes.element, pod.element), scale.element, why.element, timeline.element);
  const empty = h('div', { class: 'empty', id: 'empty' }, h('h2', {}, 'Loading…'));
  const kept = h('p', { class: 'dim', id: 'kept', hidden: true });
  body.hidden = true;
  main.replaceChildren(h('article', { class: 'replica-set' }, head, kept, body, empty));
  document.title = `${namespace}/${name} · Decree`;

  function preview(victims, size) {
    nodes.mark(victims);
    pod.forecast(victims, size);
  }

  function draw() {
    if (!standing) return;
    const row = standing.summary;
    const severity = severityOf(row);
    const cause = causeOf(row);
    const retry = nextAttempt(row);
    drawBar(bar, row);
    bar.hidden = severity === 'IN_SYNC';
    setText(numbers, barText(row));
    // The sentence has the number, unless there is more to say.
    numbers.hidden = severity === 'IN_SYNC' && row.terminating === 0;
    setAttribute(head, 'data-severity', severity);
    setText(mark, SEVERITIES[severity].mark);
    setText(state, SEVERITIES[severity].word);
    fillBadge(badge, watchedIn(row));
    setText(since, row.divergeTime ? `unconverged for ${age(now() - Date.parse(row.divergeTime))}` : '');
    setAttribute(since, 'title', row.divergeTime ? `since ${fullTime(Date.parse(row.divergeTime))}` : '');
    setText(sentence, [cause || headline(row), retry].filter(Boolean).join(' · '));
    setAttribute(sentence, 'title', retry ? `Next attempt at ${fullTime(Date.parse(row.nextSyncTime))}` : '');
    next.show(commandOf(row));
    // The API server's message appears once: after the cause, unless the cause contains it.
    setText(words, row.failure);
    told.hidden = !row.failure || cause.includes(row.failure);
  }

  function relate({ owner, siblings = [] }) {
    family.hidden = !owner;
    const shown = `${owner?.kind} ${owner?.name} ${siblings}`;
    if (!owner || family.dataset.shown === shown) return;
    family.dataset.shown = shown;
    const links = siblings.flatMap((sibling, at) => [at > 0 ? ', ' : ' · also owns ', h('a', { href: hashOf(['replicasets', cluster, namespace, sibling]) }, sibling)]);
    family.replaceChildren(`Owner: ${owner.kind} ${owner.name}`, ...links);
  }

  function takePods(found) {
    around = found;
    timeline.pods(found);
    nodes.pods(found);
    pod.pods(found);
    if (found) relate(found);
    scale.refresh();
  }

  function stand(found) {
    const isKept = found === null && standing !== null && now() < keptUntil;
    const late = found?.staleView;
    kept.hidden = !isKept && !late;
    setText(kept, late ? `This may have changed: the server last heard from the agent ${age(parseFloat(late.age) * 1000)} ago.` : 'The agent has not reconnected yet. The page shows what was known before.');
    isAbsent = isKept;
    if (isKept) return;
    keptUntil = 0;
    body.hidden = found === null;
    empty.hidden = found !== null;
    if (found === null) {
      setText(state, '');
      fillBadge(badge, '');
      setText(mark, '');
      setText(sentence, '');
      setText(numbers, '');
      setText(since, '');
      next.show('');
      told.hidden = true;
      empty.replaceChildren(h('h2', {}, 'ReplicaSet not found'), h('p', {}, `No connected cluster that you have access to has a ReplicaSet ${namespace}/${name}. It appears here as soon as one has.`));
      if (standing) timeline.change('The ReplicaSet is gone');
      standing = null;
      return;
    }
    travel.see(found.summary, now());
    timeline.standing(standing, found);
    standing = found;
    why.standing(found);
    pod.standing(found);
    scale.standing(found.summary);
    draw();
  }

  const key = [cluster, namespace, name].join('/');
  const isKept = shown.key === key;
  if (isKept) {
    takePods(shown.pods);
    stand(shown.found);
  }
  const second = setInterval(() => {
    if (isAbsent && now() >= keptUntil) {
      stand(null);
      takePods(null);
    }
    draw();
    pod.draw();
    timeline.draw();
  }, 1000);
  return {
    stream: { view: 'replicaset', cluster, namespace, name },
    isKept,
    begin() {
      if (standing) keptUntil = now() + ABSENT_MAX;
    },
    event(kind, data) {
      if (kind === 'ping') learnTime(data.seconds);
      if (kind === 'replicaset') stand(data);
      if (kind === 'pods' && (data !== null || now() >= keptUntil)) takePods(data);
    },
    close() {
      clearInterval(second);
      if (standing) shown = { key, found: standing, pods: around };
      scale.close();
      pod.close();
    },
  };
}

/** Says that all is well, in numbers. */
function headline({ replicas }) {
  return replicas === 0 ? 'Scaled to 0: no pods' : replicas === 1 ? 'Its pod is ready' : `All ${count(replicas, 'pod')} are ready`;
}
