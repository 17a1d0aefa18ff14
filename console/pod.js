// The card of one pod: its facts, its place in the order of deletion, and what would keep it.

import { makeCommand } from './copy.js';
import { h, reconcile, setText } from './dom.js';
import { age, count, now, word } from './format.js';
import { stateOf } from './nodes.js';
import { replaceQuery } from './route.js';
import { ask } from './stream.js';

/** How long the pods must rest before the page asks the server again, in milliseconds. */
const REST = 300;

/** Creates the card for the pod of the address. It calls `mark` with the name of its pod, and `changed` after a supposed cost has changed. */
export function makePod(subject, query, mark, changed) {
  let name = query.pod ?? '';
  let known = null;
  let standing = null;
  /** The preview that the page shows: its victims and its size. */
  let forecast = { victims: new Map(), size: null };
  let abort = null;
  let timer = 0;

  const title = h('h2', { class: 'pod', id: 'pod-title' });
  const sign = h('span', { 'aria-hidden': 'true' });
  const state = h('span', {});
  const facts = h('dl', { class: 'facts' });
  const field = h('input', { id: 'pod-cost', type: 'number', min: -2_147_483_648, max: 2_147_483_647, oninput: suppose });
  const asked = h('label', { for: 'pod-cost', hidden: true }, 'Cost that it would answer ', field);
  const order = h('p', { id: 'pod-order' });
  const keep = h('p', { id: 'pod-keep' });
  const [annotate, describe] = [makeCommand(), makeCommand()];
  const close = h('button', { type: 'button', class: 'close', 'aria-label': 'Close the card', onclick: () => pin('') }, '✕');
  const element = h('section', { class: 'panel card', id: 'pod', 'aria-labelledby': 'pod-title', hidden: true },
    h('div', { class: 'panel-head' }, title, h('span', { class: 'dim' }, sign, ' ', state), close), facts, asked, order, keep, annotate, describe);
  element.addEventListener('keydown', (event) => event.key === 'Escape' && pin(''));

  function pin(chosen) {
    const isClosed = chosen === '' || chosen === name;
    name = isClosed ? '' : chosen;
    replaceQuery({ pod: name });
    for (const text of [order, keep]) setText(text, '');
    annotate.show('');
    mark(name, isClosed);
    draw();
    request();
    if (!isClosed) element.scrollIntoView({ block: 'nearest' });
  }

  const costs = () => new Map((subject.costs.match(/\S+ \S+/g) ?? []).map((pair) => pair.split(' ')));

  function suppose() {
    const supposed = costs();
    if (field.value) supposed.set(name, field.value);
    else supposed.delete(name);
    subject.costs = [...supposed].flat().join(' ');
    replaceQuery({ costs: subject.costs });
    draw();
    clearTimeout(timer);
    timer = setTimeout(request, REST);
    changed();
  }

  /** Shows a command, if the pods are those of Kubernetes. */
  const showCommand = (line, command) => line.show(known?.kubernetes ? command : '');
  const podOf = () => known?.pods.find((pod) => pod.name === name);

  function draw() {
    element.hidden = !name || !known;
    if (element.hidden) return;
    const pod = podOf();
    setText(title, name);
    const [kind, shape, text] = pod ? stateOf(pod) : ['', '', ''];
    sign.className = `mark ${kind}`;
    setText(sign, shape);
    setText(state, text);
    const supposed = costs().get(name);
    const source = supposed ? ' (supposed)' : known.costs ? ' (annotation)' : '';
    asked.hidden = !known.costs || !pod?.active;
    if (document.activeElement !== field && field.value !== (supposed ?? '')) field.value = supposed ?? '';
    const since = (seconds) => (seconds ? age(now() - 1000 * seconds) : 'unknown');
    const shown = pod ? [['Node', pod.node ?? 'none yet'], ['Age', since(pod.created)], ['Ready for', pod.ready ? since(pod.readySince) : '–'], ['Restarts', pod.restarts], ['Deletion cost', `${supposed ?? pod.deletionCost}${source}`]] : [];
    const answer = standing?.lastScaleDown?.pods.find((pod) => pod.name === name)?.values.find(({ value }) => value.endsWith(' (asked)'));
    if (pod && answer) shown.push(['Last answer', answer.value.split(' ')[0]]);
    reconcile(facts, shown, ([fact]) => fact, ([fact]) => h('div', {}, h('dt', {}, fact), h('dd', {})), (item, [, value]) => setText(item.lastChild, String(value)));
    showCommand(describe, pod ? `kubectl -n ${subject.namespace} describe pod ${name}` : '');
    if (pod) return;
    setText(order, absence());
    setText(keep, '');
    annotate.show('');
  }

  /** Says what is known of a pod that does not exist now. */
  function absence() {
    const left = known.count - known.pods.length;
    if (left > 0) return `It is not one of the first ${count(known.pods.length, 'pod')} by name.`;
    const ended = standing?.lastScaleDown?.pods.find((pod) => pod.name === name && pod.chosen);
    return ended ? `The last scale-down deleted it. ${word(ended.reason?.rule ?? '', 'RULE_')}: ${ended.reason?.detail ?? ''}.` : 'This ReplicaSet has no pod with this name now.';
  }

  async function request() {
    abort?.abort();
    clearTimeout(timer);
    const pod = podOf();
    if (!pod || !standing) return;
    if (!pod.active) {
      setText(order, 'It is not active, so no scale-down chooses it.');
      setText(keep, '');
      annotate.show('');
      return;
    }
    abort = new AbortController();
    const { signal } = abort;
    try {
      const size = await place(pod, signal);
      const answer = size === null ? null : await ask('rescue', { ...subject, replicas: size, pod: name }, signal);
      showKeep(size, answer);
    } catch (error) {
      if (error.name === 'AbortError') return;
      setText(order, `No answer: ${error.message}.`);
      setText(keep, '');
      annotate.show('');
    }
  }

  /** Shows the place of a pod in the order of deletion, and returns the size at which to ask what would keep it. */
  async function place(pod, signal) {
    const { decision } = await ask('simulate', { ...subject, replicas: 1 }, signal);
    const at = decision.deletes.findIndex((victim) => victim.pod.name === pod.name);
    const { active } = standing.summary;
    if (decision.quarantined) setText(order, `Nothing is decided: ${decision.quarantined}.`);
    else if (at >= 0) {
      const { rule, detail } = decision.deletes[at].reason;
      setText(order, `Number ${at + 1} of ${active.toLocaleString('en')} in the order of deletion: deleted at ${count(active - at - 1, 'replica')} or fewer. ${word(rule, 'RULE_')}: ${detail}.`);
    } else if (decision.deletes.length >= active - 1) setText(order, 'The last in the order of deletion: deleted at 0 replicas only.');
    else setText(order, `Not among the first ${count(decision.deletes.length, 'pod')} in the order of deletion.`);
    if (forecast.victims.has(pod.name)) return forecast.size;
    return at < 0 ? null : active - at - 1;
  }

  function showKeep(size, answer) {
    const cost = answer?.changes.find(({ change }) => change === 'deletionCost')?.value;
    setText(keep, answer ? keeping(size, answer, known.costs ? 'if it answered' : 'with a deletion cost of') : '');
    // An answer takes the place of the annotation.
    showCommand(annotate, cost === undefined || known.costs ? '' : `kubectl -n ${subject.namespace} annotate pod ${name} --overwrite controller.kubernetes.io/pod-deletion-cost=${cost}`);
  }

  return {
    element,
    pin,
    draw,
    standing(found) {
      const isFirst = !standing;
      standing = found;
      if (isFirst && known) request();
    },
    pods(found) {
      const isFirst = !known;
      known = found;
      draw();
      clearTimeout(timer);
      if (isFirst) mark(name);
      if (name) timer = setTimeout(request, REST);
    },
    forecast(victims, size) {
      forecast = { victims, size };
      if (name && known) request();
    },
    close() {
      clearTimeout(timer);
      abort?.abort();
    },
  };
}

/** Describes the changes that would keep a pod at a size. Each change alone is enough. */
function keeping(size, { deleted, limited, changes }, withCost) {
  if (limited) return 'No change is known that would keep it: more pods are surplus than one decision deletes.';
  if (!deleted) return `At ${count(size, 'replica')}, it would stay.`;
  const parts = changes.map(({ change, value }) => ({ ready: 'if it were ready', deletionCost: `${withCost} ${value}`, node: `on the node ${value}` })[change]);
  if (parts.length === 0) return `At ${count(size, 'replica')}, neither a higher deletion cost nor readiness would keep it.`;
  return `At ${count(size, 'replica')}, it would stay ${parts.length > 1 ? `${parts.slice(0, -1).join(', ')} or ${parts.at(-1)}` : parts[0]}.`;
}
