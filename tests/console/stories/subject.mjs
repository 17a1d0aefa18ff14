// Stories of the page of one ReplicaSet, with made-up answers.

import { summary } from './made-up.mjs';

const WIDE = { width: 1280, height: 1100 };
const NARROW = { width: 360, height: 740 };
const SCHEMES = [['light', []], ['dark', [{ name: 'prefers-color-scheme', value: 'dark' }]]];
const QUOTA = 'Quota exceeded in payments: 404 of 300 pods';
const WORDS = 'pods "ledger-x" is forbidden: exceeded quota: pods, requested: pods=1, used: pods=300, limited: pods=300';
const COMMAND = 'kubectl -n payments describe resourcequota';
const ADDRESS = '#/replicasets/north/payments/ledger';

const at = (secondsAgo) => new Date(Date.now() - 1000 * secondsAgo).toISOString();

/** Sends a ReplicaSet and its pods to the page. */
export const show = (page, standing, pods = { count: 0, pods: [] }) => page.evaluate((found, around) => {
  window.made.say('pods', around);
  window.made.say('replicaset', found);
}, standing, pods);

/** Returns a ReplicaSet in the form of the server. */
export function standing(row, fields = {}) {
  return { summary: row, inFlight: null, nextSyncTime: row.nextSyncTime, failures: 0, decisions: [], timeline: [], lastScaleDown: null, ...fields };
}

/** Returns a pod of the page. */
export function pod(name, node, fields = {}) {
  return { name, node, phase: 'Running', active: true, terminating: false, ready: true, readySince: 0, created: 0, deletionCost: 0, restarts: 0, ...fields };
}

const reason = (rule, detail) => ({ rule: `RULE_${rule}`, detail });

function ranked(order) {
  const chosen = order < 20;
  const cost = order < 3 ? '-10' : '0';
  const values = [['UNASSIGNED', 'assigned'], ['PHASE', 'Running'], ['NOT_READY', order < 1 ? 'not ready' : 'ready'], ['DELETION_COST', cost], ['CROWDED_NODE', String(20 - Math.floor(order / 5))], ['UID', `0b5f9c1e-8d6a-4c1b-9a57-${String(order).padStart(12, '0')}`]];
  const rule = order === 0 ? 'NOT_READY' : order === 2 ? 'DELETION_COST' : order % 5 === 4 ? 'CROWDED_NODE' : 'UID';
  return { name: `ledger-${String(order).padStart(2, '0')}`, chosen, reason: order < 24 ? reason(rule, `${rule} of ${order}`) : null, values: values.map(([of, value]) => ({ rule: `RULE_${of}`, value })) };
}

function refusedLedger() {
  const row = summary('ledger', { namespace: 'payments', severity: 'BLOCKED', text: QUOTA, group: QUOTA, nextCommand: COMMAND, replicas: 38, ready: 30, since: 130, failure: WORDS, nextSyncTime: new Date(Date.now() + 60_000).toISOString() });
  const object = row.replicaSet;
  const decisions = Array.from({ length: 20 }, (_, number) => ({
    decideTime: at(2 * number + 3), cluster: 'north', clusterUid: 'north-uid', replicaSet: object, batchId: String(60 - number), action: 'ACTION_CREATE', operations: 8, reasons: [reason('TOO_FEW_REPLICAS', '30 active pods, 38 desired')],
    targets: Array.from({ length: 8 }, (_, pod) => ({ name: `ledger-n${number}-${pod}`, reason: null })), status: null,
  }));
  const answer = { action: 'ACTION_CREATE', done: 0, failed: 1, notStarted: 7, failureClass: 'FAILURE_CLASS_QUOTA', message: WORDS, times: 36, lastTime: at(2), batchId: '60' };
  const writes = [1, 4, 7].map((ago) => ({ ...decisions[0], decideTime: at(ago), batchId: String(70 - ago), action: 'ACTION_WRITE_STATUS', operations: 1, targets: [], reasons: [reason('STATUS_DIFFERS', `30 replicas, ${30 - Math.floor(ago / 3)} ready`)] }));
  const timeline = [
    { eventTime: at(120), answered: answer },
    { eventTime: at(125), scaled: { previous: 30, desired: 38 } },
    { eventTime: at(170), answered: { action: 'ACTION_DELETE', done: 20, failed: 2, notStarted: 0, failureClass: 'FAILURE_CLASS_CONFLICT', message: '', times: 1, lastTime: at(169), batchId: '20' } },
    { eventTime: at(180), decided: { batchId: '20', action: 'ACTION_DELETE', operations: 22, reason: reason('TOO_MANY_REPLICAS', '52 active pods, 30 desired') } },
    { eventTime: at(181), scaled: { previous: 52, desired: 30 } },
  ];
  return standing(row, { decisions: [...writes, ...decisions], timeline, lastScaleDown: { decideTime: at(180), batchId: '20', previous: 52, desired: 30, chosen: 22, pods: Array.from({ length: 25 }, (_, order) => ranked(order)) } });
}

const pods = {
  count: 30,
  pods: Array.from({ length: 30 }, (_, number) => pod(`ledger-${String(22 + number)}`, `node-${'abc'[number % 3]}`, number === 2 ? { ready: false, restarts: 3, deletionCost: -10 } : {})),
};

export const subject = {
  async page_of_a_replica_set_says_what_to_do({ open, until, picture, assert, audit, axe, url }) {
    const page = await open(ADDRESS, WIDE, true);
    await page.browserContext().overridePermissions(new URL(url).origin, ['clipboard-write', 'clipboard-read', 'clipboard-sanitized-write']);
    const found = refusedLedger();
    await show(page, found, pods);
    await until(page, 'its sentence', (text) => document.getElementById('sentence')?.textContent.startsWith(`${text} · next attempt in `), QUOTA);
    assert((await page.title()) === 'payments/ledger · Decree', await page.title());
    assert((await page.$eval('.standing .state', (state) => state.innerText.replace(/\s+/g, ' ').trim())) === '■ Blocked', 'its severity');
    // The API server's message is after the cause, and appears on demand.
    const isShown = () => page.$eval('#failure', (words) => words.checkVisibility());
    assert(!(await isShown()), 'the words are folded');
    await page.click('.words summary');
    assert((await isShown()) && (await page.$eval('#failure', (words) => words.textContent)) === WORDS, 'and unfold');
    await page.click('.words summary');
    assert((await page.$eval('#next code', (code) => code.textContent)) === COMMAND, 'what to do');
    await page.click('#next button');
    await until(page, 'that it is copied', () => document.querySelector('#next button').textContent === 'Copied');
    assert((await page.evaluate(() => navigator.clipboard.readText())) === COMMAND, 'the command is on the clipboard');

    assert((await page.$eval('#why-title', (title) => title.textContent)) === 'Last scale-down 52 → 30, 22 pods', 'the last scale-down');
    assert(/the last 20 of 22 deleted pods and the first 5 that stayed, in the order of deletion\.$/.test(await page.$eval('#why', (intro) => intro.textContent)), 'which of its pods are shown');
    const rows = await page.$$eval('#ranks tbody tr', (found) => found.map((row) => [row.cells[0].textContent, row.cells[1].innerText, row.querySelector('.deciding')?.cellIndex ?? -1, row.hasAttribute('data-cut')]));
    const heads = await page.$$eval('#ranks thead th', (found) => found.map((head) => head.textContent));
    assert(String(heads) === 'Pod,Result,Not ready,Deletion cost,Crowded node,Uid', `the rules that tell pods apart: ${heads}`);
    assert(rows.length === 25 && String(rows[0]) === 'ledger-00,✕ deleted,2,false' && String(rows[2]) === 'ledger-02,✕ deleted,3,false', `${rows[0]} and ${rows[2]}`);
    assert(rows.findIndex((row) => row[3]) === 20 && rows[20][1] === '● stayed', 'the cut is before the first that stayed');
    assert((await page.$eval('.why > .dim:last-child', (same) => same.textContent)) === 'The same for all of these pods: no node yet, phase.', 'rules that set none apart');
    // A rule by whose values the pods tie has no column, even if the texts name different nodes.
    const tied = structuredClone(found);
    for (const [at, { reason: decided, values }] of tied.lastScaleDown.pods.entries()) {
      values.find(({ rule }) => rule === 'RULE_CROWDED_NODE').value = `0 on node-${at % 3}`;
      if (decided?.rule === 'RULE_CROWDED_NODE') decided.rule = 'RULE_UID';
    }
    await show(page, tied, pods);
    await until(page, 'that they tie', () => [...document.querySelectorAll('#ranks thead th')].map((head) => head.textContent).join() === 'Pod,Result,Not ready,Deletion cost,Uid' && document.querySelector('.why > .dim:last-child').textContent.endsWith('phase, crowded node.'));

    // The cost that a pod answered is on its card.
    tied.lastScaleDown.pods.find(({ name }) => name === 'ledger-24').values.find(({ rule }) => rule === 'RULE_DELETION_COST').value = '17 (asked)';
    await page.evaluate(() => (window.made.answers = { simulate: () => ({ decision: { deletes: [], reasons: [] } }) }));
    await show(page, tied, { ...pods, costs: 'http://:8080/busy' });
    await page.click('.chip[tabindex="0"]');
    await until(page, 'the last answer', () => document.querySelector('#pod .facts').innerText.replace(/\s+/g, ' ').endsWith('Deletion cost -10 (annotation) Last answer 17'));
    await page.click('.chip[tabindex="0"]');

    const lines = await page.$$eval('#timeline > li', (found) => found.map((line) => `${line.querySelector('.mark').textContent} ${(line.querySelector('summary') ?? line.querySelector('.text')).textContent.trim()}`));
    assert(lines.length === 8, `repeats are one line:\n${lines.join('\n')}`);
    assert(lines.shift() === '◆ Decision: 3 status writes, ready 28 → 30', `${lines}`);
    await page.click('#timeline summary');
    assert((await page.$$eval('.writes li', (writes) => writes.map((write) => write.textContent.replace(/^[\d:]+ STATUS_DIFFERS: /, '')))).join(', ') === '30 replicas, 30 ready, 30 replicas, 29 ready, 30 replicas, 28 ready', 'each of them');
    await page.click('#timeline summary');
    assert(/^✕ Outcome: 0 of 8 creates done, 1 failed \(QUOTA\), 7 not started, 36 times since \d\d:\d\d:\d\d pods "ledger-x"/.test(lines[0]), lines[0]);
    assert(/^▶ Operation: create ledger-n0-0, .* and 4 more, 20 times since/.test(lines[1]) && /^◆ Decision: create 8 pods, 20 times since/.test(lines[2]), `${lines[1]}\n${lines[2]}`);
    assert(lines[3] === '◇ Change: desired 30 → 38' && lines[4].startsWith('! Outcome: 20 of 22 deletes done, 2 failed (CONFLICT)'), `${lines[3]}\n${lines[4]}`);
    const time = await page.$eval('#timeline > li:last-child time', (told) => [told.textContent, told.title]);
    assert(/^3 min ago$/.test(time[0]) && /^\d{4}-\d\d-\d\d, \d\d:\d\d:\d\d \S+/.test(time[1]), `${time}`);

    // Nodes with trouble come first. A pod is a mark, and shows its name on hover or focus.
    assert((await page.$$eval('#nodes h3', (nodes) => nodes.map((node) => node.textContent))).join(', ') === 'node-c 10, 1 not ready, node-a 10, node-b 10', 'the order of nodes');
    await page.focus('.chip[tabindex="0"]');
    assert((await page.$eval('#told-pod', (told) => told.textContent)) === 'ledger-24: not ready, deletion cost -10, 3 restarts', 'the pod that has the focus');
    await page.keyboard.press('ArrowRight');
    assert((await page.$eval('#told-pod', (told) => told.textContent)) === 'ledger-27: ready', 'the next one');
    assert((await page.$$('.chip[tabindex="0"]')).length === 1, 'one stop for all pods');
    const [before] = await page.$$eval('#nodes', ([nodes]) => [nodes.clientHeight]);
    await page.click('#names');
    await until(page, 'names', () => document.querySelector('.chip .pod').textContent === 'ledger-24');
    assert(await page.$eval('#nodes', (nodes, low) => nodes.clientHeight > 1.5 * low, before), 'marks are denser than names');
    await page.click('#names');
    await page.evaluate(() => window.scrollTo(0, 0));

    await page.emulateMediaType('print');
    const controls = await page.$$eval('button, input', (found) => found.filter((one) => one.checkVisibility() && !one.closest('.chips')).map((one) => one.outerHTML));
    const cut = await page.$$eval('.timeline, .ranks, .nodes', (found) => found.filter((one) => one.scrollHeight > one.clientHeight + 1).map((one) => one.id));
    assert(controls.length === 0 && cut.length === 0, `paper has ${controls}, and not all of ${cut}`);
    await picture(page, 'printed-subject');
    await page.emulateMediaType(null);

    for (const size of [WIDE, NARROW]) {
      await page.setViewport(size);
      const by = await page.$eval('#ranks .by', (rule) => rule.checkVisibility() && rule.getBoundingClientRect().right <= window.innerWidth && rule.textContent);
      assert(by === (size === NARROW && 'Not ready'), `the rule of the first pod, ${size.width} wide: ${by}`);
      for (const [scheme, features] of SCHEMES) {
        await page.emulateMediaFeatures(features);
        await audit(page, `the page, ${scheme}, ${size.width}`, axe);
        await picture(page, `subject-${scheme}-${size.width}`);
      }
    }
  },

  async page_says_what_it_does_not_know({ open, until, assert, audit, axe, picture }) {
    // In a very large session, the server names the pods of a decision, without values.
    const row = summary('ledger', { namespace: 'payments' });
    const decision = { decideTime: at(9), cluster: 'north', clusterUid: 'north-uid', replicaSet: row.replicaSet, batchId: '3', action: 'ACTION_DELETE', operations: 1, reasons: [reason('TOO_MANY_REPLICAS', '4 active pods, 3 desired')], targets: [{ name: 'ledger-1', reason: reason('NOT_READY', 'not ready before ready') }], status: null };
    const decided = { eventTime: at(9), decided: { batchId: '3', action: 'ACTION_DELETE', operations: 1, reason: decision.reasons[0] } };
    const why = async (fields, text) => {
      const page = await open(ADDRESS, WIDE, true);
      await show(page, standing(row, fields));
      await until(page, text, (wanted) => document.getElementById('why')?.textContent.endsWith(wanted), text);
      return page;
    };
    const large = await why({ lastScaleDown: undefined, decisions: [decision] }, ': 1 pod, first ledger-1.');
    assert((await large.$eval('#ranks', (ranks) => ranks.hidden)), 'no table without values');
    await why({ timeline: [decided] }, 'The last deletion is no longer known.');
    const page = await why({}, 'None since the agent connected.');

    // A restarted server knows nothing until the agent reconnects, so the page keeps its data.
    await page.evaluate(() => window.made.lose());
    await until(page, 'a new stream', () => window.made.opened === 2 && document.getElementById('status-text').textContent === 'Live');
    await show(page, null, null);
    await until(page, 'that it waits', () => document.getElementById('kept')?.checkVisibility() && document.querySelector('.panels').checkVisibility());
    await show(page, standing(row));
    await until(page, 'that it is there', () => !document.getElementById('kept').checkVisibility());
    await show(page, null, null);
    await until(page, 'that it is gone', () => document.getElementById('empty').innerText.includes('ReplicaSet not found'));

    for (const [hash, said] of [['#/nothing/here', '#/nothing/here'], ['#/sessions/all', '#/sessions/all']]) {
      const lost = await open(hash, WIDE, true);
      await until(lost, 'that there is no such page', (wanted) => document.title === 'Page not found · Decree' && document.getElementById('empty').innerText.includes(wanted), said);
      await audit(lost, hash, axe);
      await lost.click('#empty a');
      await until(lost, 'the board', () => document.title === 'Board · Decree');
    }
    const broken = await open(`${ADDRESS}?replicas=abc`, WIDE, true);
    await show(broken, standing(row));
    await until(broken, 'what is wrong with the link', () => document.getElementById('answer').textContent === 'The link asks for “abc” replicas; a number from 0 to 2147483647 is needed.');
    assert((await broken.evaluate(() => window.made.asked.length)) === 0, 'the server is not asked');
    await picture(broken, 'broken-link');
  },

  async nothing_old_is_shown_as_new({ open, until, assert }) {
    const row = summary('ledger', { namespace: 'payments' });
    const told = (page, id, text) => until(page, text, (of, part) => document.getElementById(of)?.textContent.includes(part), id, text);

    // A server that accepts the connection and says nothing is not connected.
    const silent = await open(ADDRESS, WIDE, false, () => {
      const later = window.setTimeout;
      window.setTimeout = (act, time, ...rest) => later(act, Math.min(time, 50), ...rest);
      window.fetch = (_, { signal }) => new Promise((_answer, fail) => signal.addEventListener('abort', () => fail(signal.reason)));
    });
    await told(silent, 'notice', 'the server does not answer');
    await silent.close();

    // The server says only once that a ReplicaSet is absent, and the page keeps it for a minute only.
    const absent = await open(ADDRESS, WIDE, true);
    await show(absent, standing(row));
    await told(absent, 'pods-note', '0 pods');
    await absent.evaluate(() => window.made.lose());
    await until(absent, 'a new stream', () => window.made.opened === 2 && document.getElementById('status-text').textContent === 'Live');
    await show(absent, null, null);
    await until(absent, 'that it waits', () => document.getElementById('kept')?.checkVisibility());
    await absent.evaluate(() => {
      const real = Date.now;
      Date.now = () => real() + 61_000;
    });
    await told(absent, 'empty', 'ReplicaSet not found');

    // A preview that fails leaves no victims of an earlier one.
    const failing = await open(`${ADDRESS}?replicas=0`, WIDE, true, () => {
      const victim = { pod: { name: 'ledger-a' }, reason: { rule: 'RULE_UID', detail: 'the only one' } };
      window.made.answers = { simulate: () => ({ decision: { creates: [], deletes: [victim], reasons: [] } }) };
    });
    const one = { count: 1, pods: [pod('ledger-a', 'node-a')] };
    const victims = (number) => until(failing, `${number} victims`, (wanted) => [...document.querySelectorAll('.chip[data-victim="true"]')].length === wanted && document.querySelectorAll('#would li').length === wanted, number);
    await show(failing, standing(row), one);
    await victims(1);
    await failing.evaluate(() => (window.made.answers = {}));
    await show(failing, standing(row), one);
    await told(failing, 'answer', 'No preview: the server does not answer.');
    await victims(0);

    // Pods that the server does not show are not none.
    const withheld = await open(ADDRESS, WIDE, true);
    await show(withheld, standing(row), null);
    await told(withheld, 'pods-note', 'Not shown: ');
    assert((await withheld.$$('.chip')).length === 0, 'no pod is shown');

    // A time of another day has its date.
    const old = await open(ADDRESS, WIDE, true);
    await show(old, standing(row, { timeline: [{ eventTime: at(90_000), scaled: { previous: 1, desired: 3 } }] }));
    await until(old, 'its change', () => document.getElementById('timeline')?.innerText.includes('desired 1 → 3'));
    await old.focus('#travel');
    await old.keyboard.press('Home');
    await until(old, 'the date', () => /^\d{4}-\d\d-\d\d, \d\d:/.test(document.getElementById('traveled').textContent));
  },

  async page_that_stays_open_does_not_grow({ open, until, assert }) {
    const row = summary('ledger', { namespace: 'payments' });
    const page = await open(ADDRESS, WIDE, true, () => {
      window.most = 0;
      const { set } = Map.prototype;
      Map.prototype.set = function put(...entry) {
        set.apply(this, entry);
        window.most = Math.max(window.most, this.size);
        return this;
      };
    });
    // Two pods of one name, which only a faulty agent shows, are two marks each time.
    for (const restarts of [1, 2, 3]) await show(page, standing(row), { count: 2, pods: [pod('twin', 'node-a', { restarts }), pod('twin', 'node-a', { restarts })] });
    await until(page, 'the last state', () => document.querySelector('.chip')?.getAttribute('aria-label').includes('3 restarts'));
    assert((await page.$$('.chip')).length === 2, 'no mark is left over');
    await page.evaluate((found) => {
      for (let batch = 1; batch <= 4; batch += 1) {
        const targets = Array.from({ length: 8_000 }, (_, number) => ({ name: `ledger-${batch}-${number}`, reason: null }));
        const decision = { decideTime: new Date(1000 * batch).toISOString(), batchId: String(batch), action: 'ACTION_CREATE', operations: 8_000, reasons: [], targets };
        window.made.say('replicaset', { ...found, decisions: [decision] });
      }
    }, standing(row));
    await until(page, 'all decisions', () => document.getElementById('timeline').innerText.includes('4 times since'));
    const most = await page.evaluate(() => window.most);
    assert(most >= 8_000 && most < 20_000, `it recognizes ${most} pods`);
  },

  async focus_stays_with_its_pod({ open, until, assert }) {
    const row = summary('ledger', { namespace: 'payments' });
    const page = await open(ADDRESS, WIDE, true);
    const around = (ready) => ({ count: 2, pods: [pod('a', 'node-a'), pod('b', 'node-b', { ready })] });
    await show(page, standing(row), around(true));
    await until(page, 'its pods', () => document.querySelectorAll('.chip').length === 2);
    await page.evaluate(() => document.querySelector('[data-key="b"] .chip').focus());
    await show(page, standing(row), around(false));
    await until(page, 'its node first', () => document.querySelector('#nodes h3').textContent.startsWith('node-b'));
    assert(await page.evaluate(() => document.activeElement.closest('[data-key]')?.dataset.key === 'b'), 'the focus is still there');
  },

  async least_change_keeps_a_pod({ open, until, act, picture, assert, audit, axe }) {
    const page = await open('#/replicasets/shop/default/shop-7d4b9c?replicas=5');
    await until(page, 'its pods', () => document.querySelectorAll('.chip').length === 8 && document.querySelector('.standing .numbers').textContent === '8/8 ready');
    await act('restart', { name: 'shop-7d4b9c' });
    await act('vary', { name: 'shop-7d4b9c' });
    const foretold = await until(page, 'the forecast', () => {
      const lines = [...document.querySelectorAll('#would li')];
      return lines.length === 3 && lines[0].rule.textContent === 'NOT_READY' && lines[1].rule.textContent === 'DELETION_COST' && lines.map((line) => line.dataset.key);
    });
    const [, second, third] = foretold;
    // The suggested changes are exact: with the suggested cost the pod stays, and with one less it is deleted.
    const card = (pod, part) => until(page, `${part} of ${pod}`, (name, wanted) => document.getElementById('pod-title').textContent === name && document.getElementById('pod').innerText.includes(wanted) && document.getElementById('pod-keep').textContent, pod, part);
    await page.evaluate((name) => [...document.querySelectorAll('#would button')].find((open) => open.textContent === name).click(), third);
    assert(/^At 5 replicas, it would stay .*with a deletion cost of 1/.test(await card(third, `kubectl -n default annotate pod ${third} --overwrite controller.kubernetes.io/pod-deletion-cost=1`)), 'what would keep the third');
    await page.evaluate((name) => document.querySelector(`.chip[aria-label^="${name}"]`).click(), second);
    const keep = await card(second, 'Number 2 of 8 in the order of deletion: deleted at 6 replicas or fewer. DELETION_COST: ');
    await card(second, `kubectl -n default describe pod ${second}`);
    assert(page.url().endsWith(`replicas=5&pod=${second}`) && (await page.$eval('.chip[aria-pressed="true"]', (chip) => chip.getAttribute('aria-label'))).startsWith(second), page.url());
    await audit(page, 'the card of a pod', axe);
    // The address names the pod, also one that does not exist.
    const shared = await open(new URL(page.url()).hash);
    await until(shared, 'the same pod', (name) => document.querySelector('.chip[aria-pressed="true"]')?.getAttribute('aria-label').startsWith(name) && document.getElementById('pod-order').textContent.startsWith('Number 2 of 8'), second);
    const absent = await open('#/replicasets/shop/default/shop-7d4b9c?pod=shop-x');
    await until(absent, 'that there is none', () => document.getElementById('pod-order').textContent === 'This ReplicaSet has no pod with this name now.');
    await page.bringToFront();
    const cost = Number(/deletion cost of (-?\d+)/.exec(keep)[1]);
    const isVictim = (name, wanted) => until(page, `${name}: ${wanted}`, (pod, expected) => document.querySelectorAll('#would li').length === 3 && [...document.querySelectorAll('#would .pod')].some((one) => one.textContent === pod) === expected, name, wanted);
    await act('price', { name: second, cost });
    await isVictim(second, false);
    await act('price', { name: second, cost: cost - 1 });
    await isVictim(second, true);
    await act('price', { name: second, cost: -10 });
    await until(page, 'the forecast as before', (names) => [...document.querySelectorAll('#would .pod')].map((pod) => pod.textContent).join() === names, foretold.join());

    // Where pods are asked for their costs, a person can suppose the answers.
    assert(!(await page.$eval('#pod-cost', (field) => field.checkVisibility())), 'nobody is asked');
    await act('ask', { name: 'shop-7d4b9c' });
    await until(page, 'the field', () => document.getElementById('pod-cost').checkVisibility());
    const suppose = async (answer) => {
      await page.click('#pod-cost', { clickCount: 3 });
      await page.keyboard.type(answer);
    };
    await suppose('-20');
    await card(second, 'DELETION_COST: deletion cost -20 (asked) < ');
    const least = Number(/^At 5 replicas, it would stay if it answered (-?\d+)/.exec(await card(second, 'if it answered '))[1]);
    await suppose(String(least - 1));
    await card(second, `Deletion cost\n${least - 1} (supposed)`);
    await isVictim(second, true);
    await suppose(String(least));
    await isVictim(second, false);
    await audit(page, 'a supposed cost', axe);
    await picture(page, 'supposed-cost');
    assert(page.url().endsWith(`replicas=5&pod=${second}&costs=${second}+${least}`), page.url());
    const supposed = (shown, text, value) => until(shown, text, (...wanted) => String([document.getElementById('answer').textContent, document.getElementById('pod-cost').value]) === String(wanted), text, value);
    const same = await open(new URL(page.url()).hash);
    await supposed(same, 'At 5, with 1 supposed cost, 3 pods would be deleted.', String(least));
    await same.evaluate(() => [...document.querySelectorAll('.slider button')][0].click());
    await supposed(same, 'Move the slider to see which pods would be deleted. This changes nothing.', '');
    await page.bringToFront();

    await act('own', { name: 'shop-7d4b9c' });
    await until(page, 'its owner and what else that owns', () => document.getElementById('family').textContent === 'Owner: Deployment front · also owns api' && document.querySelector('#family a').hash === '#/replicasets/shop/default/api');
  },

  async earlier_times_are_shown({ open, until, assert, audit, axe }) {
    const page = await open(ADDRESS, WIDE, true);
    const found = refusedLedger();
    await show(page, found);
    const told = (pattern) => until(page, `the time ${pattern}`, (wanted) => new RegExp(wanted).test(document.getElementById('traveled')?.textContent), pattern);
    await told('^Move the slider to see an earlier time\\.$');
    await page.focus('#travel');
    await page.keyboard.press('Home');
    await told('^\\d\\d:\\d\\d:\\d\\d: 30 desired, current pods not known, as the page was not open\\.$');
    const later = await page.$$eval('#timeline > li', (lines) => lines.map((line) => line.dataset.later === 'true'));
    assert(later.filter((one) => !one).length === 1 && !later.at(-1), `all but the first are later: ${later}`);
    await page.keyboard.press('ArrowRight');
    await told('30 desired, .* Last decision: delete 22 pods, TOO_MANY_REPLICAS: 52 active pods, 30 desired\\.$');

    // The page knows its own observations exactly.
    const after = { ...found, summary: { ...found.summary, active: 31, ready: 31, available: 31 } };
    await show(page, after);
    await until(page, 'the change', () => document.getElementById('timeline').innerText.includes('current 30 → 31'));
    await told('Last decision: delete 22 pods');
    await page.keyboard.press('End');
    await told('^Move the slider');
    await page.keyboard.press('ArrowLeft');
    await told('38 desired, 31 current, 31 ready\\. Last decision: write the status');
    for (let step = 0; step < 3; step += 1) await page.keyboard.press('ArrowLeft');
    await told('38 desired, (30 current, 30 ready|current pods not known)');
    await audit(page, 'an earlier time', axe);
    await page.evaluate(() => [...document.querySelectorAll('.travel button')][0].click());
    await told('^Move the slider');
  },

  async shadow_report_can_be_passed_on({ open, until, assert, audit, axe, url, picture }) {
    const page = await open('#/differences', WIDE, true);
    await page.browserContext().overridePermissions(new URL(url).origin, ['clipboard-write', 'clipboard-read', 'clipboard-sanitized-write']);
    const set = (name) => ({ namespace: 'shop', name, uid: name });
    const difference = (name, departure, done) => ({ detectTime: at(60), cluster: 'north', replicaSet: set(name), subject: 'SUBJECT_VICTIMS', departure, decided: 'delete a', done, why: 'both saw the same', decidedPods: ['a'], donePods: ['b'] });
    const answer = {
      differences: [difference('api', 'DEPARTURE_UNSPECIFIED', 'deleted <b>|b'), ...['web', 'cart', 'shop'].map((name, at) => difference(name, 'DEPARTURE_DELETED_BY_OTHERS', `deleted ${at + 1}`))], shadows: 1, compared: '1204', deletedByOthers: '4', replicaSets: '7', startTime: at(86_400),
      agreements: [{ subject: 'SUBJECT_COUNT', compared: '1000', explained: '0', unexplained: '0', notCompared: '31' }, { subject: 'SUBJECT_VICTIMS', compared: '204', explained: '3', unexplained: '1', notCompared: '9' }],
    };
    await page.evaluate((told) => window.made.say('differences', told), answer);
    await until(page, 'the verdict', () => document.getElementById('rate')?.textContent === '4 of 1,204 decisions differ; 1 is unexplained' && document.getElementById('numbers').textContent === '40 not compared. 99.66 % agree, of 7 ReplicaSets, for 24 h. Pods that others deleted: 4.');
    const cells = await page.$$eval('.wide[aria-label="Agreement by subject"] tbody tr', (rows) => rows.map((row) => [...row.cells].map((one) => one.textContent).join(' ')));
    assert(cells[0] === 'count 1,000 100 % 0 0 31' && cells[1] === 'victims 204 98.03 % 3 1 9' && cells[2] === 'all 1,204 99.66 % 3 1 40', cells.join('\n'));
    const rows = await page.$$eval('#differences tr', (found) => found.map((row) => [row.cells[0].textContent, ...[...row.cells].slice(1).map((cell) => cell.innerText)].join(' | ')));
    assert(rows.length === 2 && /^\d+ s ago \| shop\/api \| victims/.test(rows[0]) && /\| 3 differences \| victims \| delete a \| deleted N \|/.test(rows[1]), `equal ones are one row:\n${rows.join('\n')}`);
    await page.click('#differences summary');
    assert((await page.$$eval('#differences li', (each) => each.map((one) => one.textContent))).join(', ') === 'shop/web delete a / deleted 1, shop/cart delete a / deleted 2, shop/shop delete a / deleted 3', 'each of them');
    for (const size of [NARROW, WIDE]) {
      await page.setViewport(size);
      for (const [scheme, features] of SCHEMES) {
        await page.emulateMediaFeatures(features);
        await audit(page, `the report, ${scheme}, ${size.width}`, axe);
      }
    }
    await picture(page, 'shadow-report');
    await page.evaluate(() => [...document.querySelectorAll('button')].find((button) => button.textContent === 'Copy as Markdown').click());
    const text = await until(page, 'the report', async () => [...document.querySelectorAll('button')].some((button) => button.textContent === 'Copied') && navigator.clipboard.readText());
    assert(text.includes('4 of 1,204 decisions differ; 1 is unexplained. 40 not compared. 99.66 % agree') && text.includes('| victims | 204 | 98.03 % | 3 | 1 | 9 |') && text.includes('deleted \\<b\\>\\|b | Unexplained: both saw the same |'), text);
    await page.click('#only');
    await until(page, 'the unexplained', () => document.querySelectorAll('#differences tr').length === 1 && document.querySelector('#differences tr').textContent.includes('shop/api'));
    assert(page.url().endsWith('#/differences?show=unexplained'), page.url());

    // What a session does not tell is not the same as nothing.
    const staleViews = [{ cluster: 'north', clusterUid: 'north-uid', shard: '', age: '7.5s', missing: true }];
    await page.evaluate((told) => window.made.say('differences', told), { ...answer, staleViews });
    await until(page, 'which session is missing', () => document.getElementById('stale').textContent === 'north does not answer: the server last heard from its agent 7 s ago.');
    await page.evaluate((told) => window.made.say('differences', told), { differences: [], agreements: [], shadows: 0, staleViews });
    await until(page, 'that a session may be in shadow mode', () => document.getElementById('empty').innerText.startsWith('A session does not answer'));
  },
};
