// The effect of a change of the cluster, and of the loss of a node, as the board shows it.

const WIDE = { width: 1280, height: 800 };
const NARROW = { width: 360, height: 740 };
const SIZES = { api: 4, 'shop-7d4b9c': 8, 'web-5f6a8b': 3 };

const said = (page, until, part) => until(page, part, (wanted) => document.getElementById('what-if-answer').textContent.includes(wanted) && document.getElementById('what-if-answer').textContent, part);
const cells = (page) => page.$$eval('#affected tbody tr', (rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent)));

/** Replaces the content of a field. */
async function fill(page, selector, text) {
  await page.click(selector, { clickCount: 3 });
  await page.keyboard.press('Backspace');
  await page.type(selector, text);
}

export const whatIf = {
  async changes_of_the_cluster_are_foretold({ open, until, row, act, picture, assert, audit, axe, forgive }) {
    forgive(/status of 404/);
    const page = await open('', WIDE);
    for (const [name, pods] of Object.entries(SIZES)) await row(page, name, `${pods}/${pods} ready`);
    await page.click('.what-if summary');
    await page.type('#what-if-node', 'node-b');
    await page.keyboard.press('Enter');
    const answer = await said(page, until, 'A drain of node-b deletes ');
    const rows = await cells(page);
    const sum = (column) => rows.reduce((all, cell) => all + Number(cell[column]), 0);
    assert(answer.startsWith(`A drain of node-b deletes ${sum(3)} pods of ${rows.length} ReplicaSets, which then lack ${sum(4)} pods.`), answer);
    assert(sum(3) >= 4 && rows.every(([name, desired, current, deleted, created, pods]) => SIZES[name.replace('default/', '')] === Number(desired) && desired === current && deleted === created && pods.split(', ').length === Number(deleted)), rows.join('\n'));
    assert(page.url().endsWith('#/?drain=node-b'), page.url());
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
    await until(shared, 'the page of the first', (name) => document.title.startsWith(name), rows[0][0]);

    // A chosen cluster that is not connected is not replaced by the only one.
    const absent = await open('#/?cluster=gone&drain=node-b', WIDE);
    await said(absent, until, 'No preview: cluster "gone" is not connected.');
    await page.bringToFront();
    await fill(page, '#what-if-node', 'node-x');
    await page.keyboard.press('Enter');
    await said(page, until, 'A drain of node-x affects no ReplicaSet');
    assert(!(await page.$eval('#affected', (table) => table.checkVisibility())), 'an empty table is not shown');

    await act('quota', { pods: 15 });
    await act('scale', { name: 'api', replicas: 6 });
    await row(page, 'api', 'Blocked');
    await page.select('#what-if-kind', 'quota');
    await page.type('#what-if-pods', '16');
    await page.keyboard.press('Enter');
    await said(page, until, 'A quota of 16 pods in default refuses 1 of 2 creates; 15 pods count now.');
    assert(String(await cells(page)) === 'default/api,6,4,2,1', String(await cells(page)));
    assert(page.url().endsWith('quota=default%2F16'), page.url());
    await fill(page, '#what-if-pods', '10');
    await page.keyboard.press('Enter');
    await said(page, until, 'It deletes no pods, but a lost pod is not replaced before 6 pods are gone.');
  },

  async lost_node_is_one_cause({ open, until, row, act, assert }) {
    const page = await open('', WIDE);
    for (const [name, pods] of Object.entries(SIZES)) await row(page, name, `${pods}/${pods} ready`);
    await act('scale', { name: 'shop-7d4b9c', replicas: 18 });
    await row(page, 'shop-7d4b9c', '18/18 ready');
    await act('lose', { name: 'node-b' });
    const cause = await until(page, 'the node', () => [...document.querySelectorAll('.space .row .cause')].map((cell) => cell.innerText).find((text) => text.includes('node-b')));
    const [, pods] = /^None of the (\d+) known active pods on node-b is ready/.exec(cause) ?? [];
    assert(Number(pods) >= 6, cause);
    const page2 = await open('#/replicasets/shop/default/shop-7d4b9c', WIDE);
    await until(page2, 'what to do', () => document.querySelector('#next code')?.textContent === 'kubectl describe node node-b');
  },
};
