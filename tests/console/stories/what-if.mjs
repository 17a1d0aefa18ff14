// The effect of a change of the cluster.

import { summary } from './made-up.mjs';

const WIDE = { width: 1280, height: 800 };
const NARROW = { width: 360, height: 740 };
const SIZES = { api: 4, 'shop-7d4b9c': 8, 'web-5f6a8b': 3 };

const said = (page, until, part) => until(page, part, (wanted) => document.getElementById('what-if-answer').textContent.includes(wanted) && document.getElementById('what-if-answer').textContent, part);
const cells = (page) => page.$$eval('#affected tbody tr:not(.namespace)', (rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent)));

/** Chooses a name of a list, and returns the line of the list. */
async function pick(page, until, field, name) {
  const line = await until(page, `${name} in the list`, (id, value) => document.querySelector(`#${id} option[value="${value}"]`)?.textContent, field, name);
  await page.select(`#${field}`, name);
  return line;
}

/** Replaces the content of a field. */
async function fill(page, selector, text) {
  await page.click(selector, { clickCount: 3 });
  await page.keyboard.press('Backspace');
  await page.type(selector, text);
}

export const whatIf = {
  async previews_follow_the_cluster_and_say_what_they_lack({ open, until, assert }) {
    const tell = (page, rows, more = {}) => page.evaluate((known, fields) => {
      window.made.say('rows', known);
      window.made.say('board', { seconds: Math.floor(Date.now() / 1000), gone: [], sessions: 1, synced: 1, ...fields });
    }, rows, more);
    const page = await open('#/what-if/scale?replica-set=shop%2Fcart&replicas=1', WIDE, true, () => {
      window.made.answers = { simulate: () => ({ decision: { creates: [], deletes: [], reasons: [] } }) };
    });
    const asked = (number) => until(page, `question ${number}`, (wanted) => window.made.asked.filter(({ route }) => route === 'simulate').length === wanted, number);
    await tell(page, [summary('cart')]);
    await said(page, until, 'shop/cart: 3 of 3 pods ready');
    await asked(1);
    const stale = [{ cluster: 'north', shard: '', age: 12, missing: false }];
    await tell(page, [summary('cart', { ready: 2 })], { stale });
    await said(page, until, 'shop/cart: 2 of 3 pods ready');
    await asked(2);
    await until(page, 'that it may have changed', () => document.getElementById('what-if-late').textContent === 'north may have changed: the server last heard from its agent 12 s ago.');
    // Another cluster has a ReplicaSet with the same UID.
    const twin = { ...summary('cart', { cluster: 'south' }), replicaSet: summary('cart').replicaSet };
    await tell(page, [twin]);
    await until(page, 'both clusters', () => document.querySelectorAll('#cluster option').length === 2);
    await tell(page, [], { gone: ['north-shop-cart north'] });
    await said(page, until, 'No ReplicaSet shop/cart is known now.');
    await page.close();

    // The address of a ReplicaSet names one cluster, even if two have one name.
    const board = await open('', WIDE, true);
    await tell(board, [summary('cart', { cluster: 'south' }), summary('mail'), summary('web', { clusterUid: 'other-uid' })]);
    const addresses = await until(board, 'its rows', () => document.querySelectorAll('.who a').length === 3 && [...document.querySelectorAll('.who a')].map((link) => link.hash).sort().join(' '));
    assert(addresses === '#/replicasets/north-uid/shop/mail #/replicasets/other-uid/shop/web #/replicasets/south/shop/cart', addresses);
    await board.close();

    const effect = { replicaSet: { namespace: 'shop', name: 'cart' }, cluster: 'north', replicas: 1, active: 1, deleted: 1, deletedPods: ['cart-x'], creates: 1, readyLeft: 1, inAdvance: 0 };
    for (const [replicaSets, text, note] of [[[effect], 'A drain of node-b deletes at least 1 pod of 1 ReplicaSet.', 'All then lack at least 1 pod.'], [[], 'A drain of node-b affects no ReplicaSet of those that are known now.', '']]) {
      const lacking = await open('#/what-if/drain?node=node-b', WIDE, true);
      await lacking.evaluate((found) => {
        const staleViews = [{ cluster: 'north', clusterUid: 'north-uid', shard: 'east', age: '7.5s', missing: true }];
        window.made.answers = { nodes: () => ({ nodes: [['node-b', 1]], complete: false }), 'simulate-cluster': () => ({ replicaSets: found, nextPageToken: '', quota: null, staleViews }) };
      }, replicaSets);
      await tell(lacking, [summary('cart')]);
      await said(lacking, until, text);
      const shown = await lacking.$eval('#what-if-note', (element) => element.textContent);
      assert(shown.startsWith(note) && shown.endsWith('This lacks the ReplicaSets of a session. north, shard east, does not answer: the server last heard from its agent 7 s ago.'), shown);
      await lacking.close();
    }
  },

  async changes_of_the_cluster_are_foretold({ open, until, row, act, picture, assert, audit, axe, forgive }) {
    forgive(/status of 404/);
    const board = await open('', WIDE);
    for (const [name, pods] of Object.entries(SIZES)) await row(board, name, `${pods}/${pods} ready`);
    await board.click('.lead .primary');
    await until(board, 'the page', () => document.title === 'What if? · Decree' && document.querySelector('.tabs [aria-current]')?.textContent === 'Scale a ReplicaSet');

    // A board that was to be drawn again when its user left it leaves the next page alone.
    await board.goBack();
    await row(board, 'api', '4/4 ready');
    const title = await board.evaluate(async () => {
      document.querySelector('#sort').dispatchEvent(new Event('change'));
      document.querySelector('.lead .primary').click();
      window.dispatchEvent(new Event('hashchange'));
      for (let frames = 0; frames < 2; frames += 1) await new Promise(requestAnimationFrame);
      return document.title;
    });
    assert(title === 'What if? · Decree', `the title is ${title}`);

    const page = await open('#/what-if/scale?replica-set=default%2Fshop-7d4b9c&replicas=5', WIDE);
    await said(page, until, 'default/shop-7d4b9c: 8 of 8 pods ready');
    await until(page, 'the victims', () => document.getElementById('answer').textContent === 'At 5, 3 pods would be deleted.' && document.querySelectorAll('#would li').length === 3);
    await fill(page, '#replica-set', 'default/nothing');
    await page.keyboard.press('Enter');
    await said(page, until, 'No ReplicaSet default/nothing is known.');

    await page.click('.tabs a:nth-child(2)');
    await until(page, 'the tab', () => document.getElementById('node'));
    const line = await pick(page, until, 'node', 'node-b');
    await page.click('form .primary');
    const answer = await said(page, until, 'A drain of node-b deletes ');
    const rows = await cells(page);
    const sum = (column) => rows.reduce((all, cell) => all + Number.parseInt(cell[column], 10), 0);
    const note = await page.$eval('#what-if-note', (text) => text.textContent);
    // All of its pods may be of one.
    const affected = `${rows.length} ReplicaSet${rows.length === 1 ? '' : 's'}`;
    assert(answer === `A drain of node-b deletes ${sum(3)} pods of ${affected}.` && note.startsWith(`All then lack ${sum(4)} pods. `), `${answer} ${note}`);
    assert(rows.every((cell) => Number(cell[5]) === Number(cell[2]) - Number.parseInt(cell[3], 10)), rows.join('\n'));
    assert(sum(3) >= 4 && rows.every(([name, desired, current, deleted, created]) => SIZES[name] === Number(desired) && desired === current && Number.parseInt(deleted, 10) === Number(created) && deleted.includes(`${name}-`)), rows.join('\n'));
    assert((await page.$eval('.namespace', (line) => line.textContent)) === `default ${affected}, ${sum(3)} pods deleted`, 'the sum of the namespace');
    assert(line === `node-b, ${sum(3)} pods`, `the list says ${line}`);
    assert(page.url().endsWith('#/what-if/drain?node=node-b'), page.url());
    for (const size of [WIDE, NARROW]) {
      await page.setViewport(size);
      await audit(page, `the preview, ${size.width}`, axe);
      await picture(page, `what-if-${size.width}`);
    }
    await page.setViewport(WIDE);

    // The address restores the same view, and a row links to its ReplicaSet.
    const shared = await open(new URL(page.url()).hash, WIDE);
    assert((await said(shared, until, 'A drain of node-b deletes ')) === answer, 'a shared address shows the same');
    await shared.click('#affected a');
    await until(shared, 'the page of the first', (name) => document.title.startsWith(`default/${name}`), rows[0][0]);

    // ReplicaSets without a ready pod elsewhere are named, and those of them that get replacements in advance.
    const bare = await open('#/what-if/drain?node=node-b', WIDE, true, () => {
      const effect = (name, readyLeft, inAdvance) => ({ replicaSet: { namespace: 'shop', name }, cluster: 'north', replicas: 1, active: 1, deleted: 1, deletedPods: [`${name}-x`], creates: 1, readyLeft, inAdvance });
      const replicaSets = [effect('cart', 0, 1), effect('mail', 0, 0), effect('web', 1, 1)];
      window.made.answers = { nodes: () => ({ nodes: [['node-b', 3]], complete: true }), 'simulate-cluster': () => ({ replicaSets }) };
    });
    await bare.evaluate((known) => {
      window.made.say('rows', [known]);
      window.made.say('board', { seconds: Math.floor(Date.now() / 1000), gone: [], sessions: 1, synced: 1 });
    }, summary('cart'));
    await said(bare, until, 'A drain of node-b deletes 3 pods of 3 ReplicaSets.');
    const warning = '2 of them are left with no ready pod: shop/cart, shop/mail. With a disruption budget, these get replacements first: shop/cart. All then lack 3 pods.';
    await until(bare, warning, (text) => document.getElementById('what-if-note').textContent.startsWith(text), warning);
    assert((await cells(bare)).map((cell) => cell[5]).join() === '0,0,1', 'the ready pods that are left');
    await bare.close();

    // A chosen cluster that is not connected is not replaced by the only one.
    const absent = await open('#/what-if/drain?cluster=gone&node=node-b', WIDE);
    await said(absent, until, 'No preview: cluster "gone" is not connected.');
    await until(absent, 'why the list is empty', () => document.getElementById('node').textContent === 'No nodes: cluster "gone" is not connectednode-b');
    const unknown = await open('#/what-if/drain?node=node-x', WIDE);
    await said(unknown, until, 'A drain of node-x affects no ReplicaSet');
    assert(!(await unknown.$eval('#affected', (table) => table.checkVisibility())), 'an empty table is not shown');
    await until(unknown, 'the nodes', () => document.querySelectorAll('#node option').length > 2 && document.getElementById('node').value === 'node-x');
    // Chromium keeps at most six connections to a server open, and each page has a stream.
    for (const each of [shared, absent, unknown]) await each.close();

    await act('quota', { pods: 15 });
    await act('scale', { name: 'api', replicas: 6 });
    const blocked = await open('', WIDE);
    await row(blocked, 'api', 'Blocked');
    await until(blocked, 'the headline', () => document.getElementById('headline').textContent === 'default/api is blocked by a quota of 15 pods');
    await page.bringToFront();
    await page.click('.tabs a:nth-child(3)');
    await until(page, 'the tab', () => document.getElementById('pods'));
    assert((await pick(page, until, 'namespace', 'default')) === 'default, 15 pods', 'the pods of the namespace');
    await page.type('#pods', '16');
    await page.keyboard.press('Enter');
    await said(page, until, 'A quota of 16 pods in default refuses 1 of 2 creates; 15 pods count now.');
    assert(String(await cells(page)) === 'api,6,4,2,1', String(await cells(page)));
    assert(page.url().endsWith('#/what-if/quota?namespace=default&pods=16'), page.url());
    await fill(page, '#pods', '10');
    await page.keyboard.press('Enter');
    await until(page, 'what it means', () => document.getElementById('what-if-note').textContent.startsWith('It deletes no pods, but a lost pod is not replaced before 6 pods are gone.'));
    await page.evaluate(() => (window.location.hash = '#/what-if/quota?namespace=nowhere&pods=10'));
    await said(page, until, 'No ReplicaSet is known in the namespace nowhere.');
  },
};
