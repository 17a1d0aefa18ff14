// Stories with made-up answers: the causes of many ReplicaSets.

import { summary } from './made-up.mjs';

const WIDE = { width: 1280, height: 800 };
const NARROW = { width: 360, height: 740 };
/** A small window at a zoom of 200 %. */
const ZOOMED = { width: 640, height: 400 };
/** The maximum height of everything above the first row of a small window. */
const ABOVE_MAX = 220;
const SCHEMES = [['light', []], ['dark', [{ name: 'prefers-color-scheme', value: 'dark' }]]];
const QUOTA = 'Quota exceeded in payments: 404 of 300 pods';
const COMMAND = 'kubectl -n payments describe resourcequota';
const LONG = 'recommendations-personalization-service-canary-5d4c7b8f69';
const WORDS = 'The admission webhook images.policy.example.com denied the request: image registry.example.com/team/recommendations:latest has no digest, and is not in the list of allowed images';

/** Sends rows to a page, and then the end of the rows. */
const say = (page, rows, standing = {}) => page.evaluate((told, fields) => {
  window.made.say('rows', told);
  window.made.say('board', { seconds: Math.floor(Date.now() / 1000), gone: [], sessions: 2, synced: 2, ...fields });
}, rows, standing);

const names = (page) => page.$$eval('.space .row', (rows) => rows.sort((a, b) => a.dataset.at - b.dataset.at).map((row) => (row.querySelector('.name') ?? row.querySelector('strong')).textContent));
const summaryLine = (page, until, text) => until(page, text, (wanted) => document.getElementById('summary').textContent === wanted, text);

function troubled() {
  const refused = Array.from({ length: 97 }, (_, at) => summary(`ledger-${String(at).padStart(2, '0')}`, { namespace: 'payments', severity: 'BLOCKED', text: QUOTA, group: QUOTA, nextCommand: COMMAND, replicas: 4, ready: 2, since: 700 - at, nextSyncTime: new Date(Date.now() + 60_000).toISOString() }));
  return [
    ...refused,
    summary(LONG, { cluster: 'south', severity: 'BLOCKED', text: WORDS, replicas: 9, ready: 0, since: 30 }),
    summary('search', { severity: 'SLOW', text: '1 of 3 pods not ready', ready: 2, since: 300 }),
    summary('cart', { severity: 'WORKING', text: '2 operations in flight', ready: 1, since: 5 }),
    summary('watched', { cluster: 'south', text: 'In sync', mode: 'MODE_SHADOW' }),
    ...Array.from({ length: 20 }, (_, at) => summary(`api-${String(at).padStart(2, '0')}`, { text: 'In sync' })),
  ];
}

export const causes = {
  async board_puts_causes_first({ open, until, picture, assert, audit, axe }) {
    const page = await open('', WIDE, true);
    await say(page, troubled());
    await summaryLine(page, until, '121 ReplicaSets: 98 blocked, 1 slow, 1 working, 21 in sync.');
    assert((await page.title()) === '(98) Board · Decree', await page.title());
    assert((await page.$eval('#headline', (title) => title.textContent)) === '97 ReplicaSets in payments are blocked by a quota of 300 pods. 1 more is blocked', 'the most important fact first');
    for (const place of ['.lead', '.row.group']) assert((await page.$eval(`${place} .command`, (line) => line.innerText.replace(/\s+/g, ' '))) === `${COMMAND} Copy`, `what to do, in ${place}`);
    const top = await names(page);
    assert(top[0] === '97 ReplicaSets in payments' && top[2] === 'search' && top[3] === 'cart' && top[4] === 'api-00', `the order is ${top}`);
    assert((await page.$eval('.space .row[data-at="4"] .cause', (cause) => cause.innerText.trim())) === '', 'what the severity says is not said again');
    assert(top[1].includes('…') && LONG.startsWith(top[1].split('…')[0]) && LONG.endsWith(top[1].split('…')[1]), `${top[1]} has the beginning and the end`);
    assert((await page.$eval('.space .row[data-at="1"] a', (link) => link.title)) === `south / shop / ${LONG}`, 'the full name is the title');
    const heights = await page.$$eval('.space .row', (rows) => rows.map((row) => [row.dataset.severity, row.offsetHeight, row.querySelector('.bar').checkVisibility()]));
    assert(heights.some(([severity]) => severity === 'IN_SYNC') && heights.every(([severity, height, isDrawn]) => (severity === 'IN_SYNC') === (height === 32) && isDrawn === (severity !== 'IN_SYNC')), `${heights}`);
    const group = await page.$eval('.row.group', (row) => row.innerText.replace(/\s+/g, ' '));
    assert(group.includes('Blocked') && group.includes('194/388 ready') && group.includes(QUOTA), group);
    await picture(page, 'causes');

    // A cause is never cut at any width: its row is as high as the text.
    for (const size of [WIDE, NARROW, ZOOMED]) {
      await page.setViewport(size);
      await until(page, `a row that is higher, ${size.width} wide`, (words) => {
        const [row, next] = [1, 2].map((at) => document.querySelector(`.space .row[data-at="${at}"]`));
        const cause = row?.querySelector('.cause');
        const box = row?.getBoundingClientRect();
        return cause?.innerText.includes(words) && cause.getBoundingClientRect().bottom <= box.bottom && cause.scrollWidth <= cause.clientWidth && Math.abs(next.getBoundingClientRect().top - box.bottom) < 2;
      }, WORDS);
      const above = await page.$eval('.space .row[data-at="0"]', (first) => first.getBoundingClientRect().top);
      assert(size === WIDE || above <= ABOVE_MAX, `the first row is ${above} below the top, ${size.width} wide`);
      for (const [scheme, features] of SCHEMES) {
        await page.emulateMediaFeatures(features);
        await audit(page, `the board, ${scheme}, ${size.width}`, axe);
        await picture(page, `causes-${scheme}-${size.width}`);
      }
    }
    await page.setViewport(WIDE);

    // Forced colors remove backgrounds, but not the bars.
    const client = await page.createCDPSession();
    await client.send('Emulation.setEmulatedMedia', { features: [{ name: 'forced-colors', value: 'active' }] });
    await picture(page, 'forced-colors');
    const bar = await page.$('.row.group .bar');
    const drawn = await bar.screenshot({ encoding: 'base64' });
    await bar.evaluate(({ children }) => [...children].forEach((part) => (part.hidden = true)));
    assert((await bar.screenshot({ encoding: 'base64' })) !== drawn, 'a bar shows its parts in forced colors');
    await client.send('Emulation.setEmulatedMedia', { features: [] });

    const calm = await open('', { width: 1280, height: 900 }, true);
    await say(calm, Array.from({ length: 47 }, (_, at) => summary(`api-${at}`, { text: 'In sync' })));
    await until(calm, '20 rows in 900 pixels', () => [...document.querySelectorAll('.space .row')].filter((one) => one.getBoundingClientRect().bottom <= window.innerHeight).length >= 20);
    await page.bringToFront();

    // Keys open and close a group, and its members follow it.
    await page.focus('.row.group button');
    await page.keyboard.press('ArrowRight');
    await until(page, 'its members', () => document.querySelector('.space .row[data-at="1"] .name').textContent === 'ledger-00' && document.querySelector('.row.group button').getAttribute('aria-expanded') === 'true');
    assert((await page.$eval('.space .row[data-at="1"] .cause', (cause) => cause.innerText)).includes(`${QUOTA} · next attempt in `), 'a member says when it is tried again');
    await page.keyboard.press('Enter');
    await until(page, 'that they are gone', () => document.querySelector('.row.group button').getAttribute('aria-expanded') === 'false' && document.querySelectorAll('.space .row').length < 30);
  },

  async back_returns_to_the_place_on_the_board({ open, until }) {
    const page = await open('', WIDE, true);
    await say(page, troubled());
    await until(page, 'the group', () => document.querySelector('.row.group button'));
    await page.click('.row.group button');
    await until(page, 'its members', () => document.querySelector('.space .row[data-at="1"] .name')?.textContent === 'ledger-00');
    await page.$eval('.rows', (rows) => (rows.scrollTop = 900));
    await until(page, 'a row further down', () => document.querySelector('.rows').scrollTop === 900 && document.querySelector('.space .row[data-at="20"] a'));
    await page.click('.space .row[data-at="20"] a');
    await until(page, 'the page of the ReplicaSet', () => window.location.hash.endsWith('/payments/ledger-19'));
    await page.goBack();
    await until(page, 'a new stream', () => window.made.opened === 3);
    await say(page, troubled());
    await until(page, 'the same place', () => document.activeElement.textContent.startsWith('ledger-19') && document.querySelector('.rows').scrollTop === 900);
  },

  async board_is_filtered_and_sorted({ open, until, assert }) {
    const page = await open('', WIDE, true);
    await say(page, troubled());
    await summaryLine(page, until, '121 ReplicaSets: 98 blocked, 1 slow, 1 working, 21 in sync.');
    await page.type('#search', 'cart');
    await summaryLine(page, until, '1 ReplicaSet of 121: 1 working.');
    assert((await page.title()) === 'Board · Decree', 'nothing that is found is blocked');
    await page.click('#search', { clickCount: 3 });
    await page.keyboard.press('Backspace');
    await page.select('#cluster', 'south');
    await summaryLine(page, until, '2 ReplicaSets of 121: 1 blocked, 1 in sync.');
    await until(page, 'a badge on the one in shadow mode', () => {
      const badges = [...document.querySelectorAll('.space .row')].filter((row) => row.querySelector('.badge').checkVisibility()).map((row) => row.querySelector('.name').textContent);
      return badges.join() === 'watched' && document.getElementById('watched').hidden;
    });
    await page.select('#cluster', '');
    await page.select('#namespace', 'payments');
    await summaryLine(page, until, '97 ReplicaSets of 121: 97 blocked.');
    await page.click('.head [role="columnheader"]:nth-child(2) button');
    await page.click('.head [role="columnheader"]:nth-child(2) button');
    await until(page, 'names from the end, each with its row', () => document.querySelector('.space .row[data-at="0"] .name')?.textContent === 'ledger-96' && document.querySelectorAll('.row.group').length === 0);
    assert((await page.$eval('.head [role="columnheader"]:nth-child(2)', (head) => head.getAttribute('aria-sort'))) === 'descending', 'it says so');
    assert(page.url().endsWith('#/?namespace=payments&sort=-name'), page.url());

    // The browser keeps the settings; an address overrides them.
    const again = await open('', WIDE, true);
    await say(again, troubled());
    await summaryLine(again, until, '97 ReplicaSets of 121: 97 blocked.');
    assert(again.url().endsWith('#/?namespace=payments&sort=-name'), again.url());
    const shared = await open('#/?show=slow', WIDE, true);
    await say(shared, troubled());
    await until(shared, 'one row', () => document.querySelectorAll('.space .row').length === 1 && document.querySelector('.name').textContent === 'search');
    // Back from the page of a ReplicaSet, the board has its earlier state.
    await shared.click('.space a');
    await until(shared, 'its page', () => document.querySelector('h1').textContent === 'search');
    assert((await shared.$eval('.crumbs a', (link) => link.getAttribute('href'))) === '#/?show=slow', 'the way back keeps the filter');
    // An address within the board shows what it names.
    const isShown = (q, first) => until(shared, `a board of “${q}”`, (text, name) => document.getElementById('search')?.value === text && document.querySelector('.space .row[data-at="0"] .name')?.textContent === name, q, first);
    await shared.evaluate(() => (window.location.hash = '#/?q=cart'));
    await isShown('cart', 'cart');
    await shared.click('nav a[data-view="board"]');
    await isShown('', 'ledger-96');
    await again.bringToFront();
    await again.type('#search', 'nothing');
    await until(again, 'that nothing is found', () => document.getElementById('empty').innerText.includes('Nothing found'));
    await again.click('#empty button');
    await summaryLine(again, until, '121 ReplicaSets: 98 blocked, 1 slow, 1 working, 21 in sync.');
  },

  async map_shows_every_replica_set({ open, until, picture, assert, audit, axe, forgive }) {
    // The browser's warning for a test that reads the picture.
    forgive(/willReadFrequently/);
    const page = await open('', WIDE, true);
    const rows = Array.from({ length: 5_000 }, (_, at) => summary(`set-${String(at).padStart(4, '0')}`, at % 500 === 7 ? { severity: 'BLOCKED', text: 'Refused', ready: 0, since: 90 } : {}));
    await say(page, rows);
    await until(page, 'its summary', () => document.getElementById('heat')?.getAttribute('aria-label').startsWith('Map of 5,000 ReplicaSets: 10 blocked, 4,990 in sync.'));
    for (const size of [NARROW, WIDE]) {
      await page.setViewport(size);
      const { bad, good, height } = await until(page, `a picture, ${size.width} wide`, () => {
        const canvas = document.querySelector('#heat canvas');
        const probe = document.createElement('canvas').getContext('2d');
        const style = getComputedStyle(canvas);
        const colour = (name) => {
          probe.fillStyle = style.getPropertyValue(name);
          probe.fillRect(0, 0, 1, 1);
          return String(probe.getImageData(0, 0, 1, 1).data);
        };
        const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
        const pixels = new Map();
        for (let at = 0; at < data.length; at += 4) {
          const name = String(data.subarray(at, at + 4));
          pixels.set(name, (pixels.get(name) ?? 0) + 1);
        }
        const fits = document.getElementById('heat').getBoundingClientRect().right <= window.innerWidth;
        return fits && { bad: pixels.get(colour('--bad')), good: pixels.get(colour('--good')), height: canvas.clientHeight };
      });
      // Each ReplicaSet has a cell, and one that needs attention covers more of it.
      assert(good > 4_900 && bad / 10 >= 4 * (good / 4_990), `${bad} and ${good} pixels`);
      assert(height <= 160, `it is ${height} high`);
      await picture(page, `map-${size.width}`);
      await audit(page, `the map, ${size.width}`, axe);
    }
    // Paper has the rows in their order, no controls, and a sentence on the rest.
    await page.emulateMediaType('print');
    const paper = await page.evaluate(() => {
      window.dispatchEvent(new Event('beforeprint'));
      const isShown = (one) => one.checkVisibility();
      const top = (one) => one.getBoundingClientRect().top;
      return {
        rows: [...document.querySelectorAll('.space .row')].filter(isShown).sort((a, b) => top(a) - top(b)).map((one) => Number(one.dataset.at)),
        text: document.querySelector('.printed').innerText,
        controls: [...document.querySelectorAll('button, input, select')].filter((one) => isShown(one) && !one.closest('.row, .strip')).map((one) => one.outerHTML),
      };
    });
    assert(paper.rows.length === 1_000 && paper.rows.every((at, place) => at === place), `${paper.rows.length} rows are printed`);
    assert(paper.text === 'The first 1,000 of 5,000 rows are printed. Search or filter to print others.' && paper.controls.length === 0, `${paper.text} ${paper.controls}`);
    await picture(page, 'printed-board');
    await page.emulateMediaType(null);
    const told = (text) => until(page, text, (wanted) => document.querySelector('.strip .told').textContent === wanted, text);
    await page.focus('#heat');
    for (let step = 0; step < 8; step += 1) await page.keyboard.press('ArrowRight');
    await told('north/shop/set-0007: Blocked, Refused');
    await page.keyboard.press('End');
    await told('north/shop/set-4999: In sync, All pods available');
    await page.keyboard.press('Enter');
    await until(page, 'its page', () => document.querySelector('h1').textContent === 'set-4999');
    await page.goBack();
    await until(page, 'the board', () => document.getElementById('heat') !== null);
    await say(page, rows);
    await until(page, 'the map', () => document.querySelector('#heat canvas').clientWidth > 500);
    const box = await page.$eval('#heat canvas', (canvas) => {
      const { left, top } = canvas.getBoundingClientRect();
      return { left, top };
    });
    await page.mouse.click(box.left + 1, box.top + 1);
    await until(page, 'the page of the first', () => document.querySelector('h1').textContent === 'set-0000');

    // An incident among thousands is one band of the map, and one row.
    const incident = await open('', WIDE, true);
    const refused = { severity: 'BLOCKED', text: QUOTA, group: QUOTA, nextCommand: COMMAND, ready: 2, since: 700 };
    await say(incident, Array.from({ length: 5_000 }, (_, at) => {
      const namespace = ['accounts', 'catalog', 'images', 'ledger', 'mail', 'orders', 'payments', 'search', 'shipping', 'web'][Math.floor(at / 500)];
      return summary(`${namespace}-${String(at % 500).padStart(3, '0')}`, { namespace, ...(namespace === 'payments' ? refused : {}) });
    }));
    await until(incident, 'its sentence', () => document.getElementById('headline')?.textContent === '500 ReplicaSets in payments are blocked by a quota of 300 pods');
    await until(incident, 'one row', () => document.querySelectorAll('.space .row[data-severity="BLOCKED"]').length === 1);
    await until(incident, 'its map', () => document.querySelector('#heat canvas')?.clientWidth > 500);
    await picture(incident, 'incident');
  },

  async shadow_shows_the_cluster_and_one_badge({ open, until, row, act, picture, assert, audit, axe }) {
    const page = await open();
    await row(page, 'web-5f6a8b', 'Missing: 3 of 3 pods');
    for (const pod of ['api-w', 'api-x', 'api-y', 'api-z']) await act('foreign', { name: pod });
    await row(page, 'api', '4/4 ready');
    await row(page, 'api', 'In sync');
    await until(page, 'one badge for all', () => {
      const [all, row] = ['#watched', '.space .row'].map((at) => document.querySelector(`${at} .badge`));
      return all.checkVisibility() && !row.checkVisibility() && document.getElementById('watched').innerText.endsWith('No decision is executed (shadow mode).');
    });
    const blocked = await page.title();
    assert(blocked === 'Board · Decree', `the mode blocks nothing: ${blocked}`);
    await audit(page, 'the board in shadow mode', axe);
    await picture(page, 'shadow-board');
    const one = await open('#/replicasets/shop/default/web-5f6a8b');
    await until(one, 'the badge', () => document.querySelector('.standing .badge')?.checkVisibility());
    await until(one, 'what was not executed', () => document.getElementById('timeline').innerText.includes('not executed (shadow): 3 creates'));
    const marks = await one.$$eval('#timeline .mark', (found) => found.map((mark) => mark.textContent));
    assert(marks.includes('◌') && !marks.includes('✕') && !marks.includes('✓'), `nothing failed: ${marks}`);
    await audit(one, 'a ReplicaSet in shadow mode', axe);
    await picture(one, 'shadow-replica-set');
  },

  async board_keeps_its_rows_until_agents_are_back({ open, until, assert }) {
    const page = await open('', WIDE, true);
    await say(page, troubled());
    const whole = '121 ReplicaSets: 98 blocked, 1 slow, 1 working, 21 in sync.';
    await summaryLine(page, until, whole);
    await page.evaluate(() => window.made.lose());
    await until(page, 'a new stream', () => window.made.opened === 2 && document.getElementById('status-text').textContent === 'Live');
    // The server has restarted and knows no agent yet; then one of two.
    const kept = `${whole} 2 agents connected before the server restarted; until they are back, the board shows what was known.`;
    await say(page, [], { sessions: 0, synced: 0 });
    await summaryLine(page, until, kept);
    await say(page, [summary('api-00', { ready: 2, severity: 'WORKING', text: '1 of 3 pods not ready', since: 3 })], { sessions: 1, synced: 1 });
    await summaryLine(page, until, kept.replace('1 working, 21 in sync', '2 working, 20 in sync'));
    assert(await page.$eval('#empty', (empty) => empty.hidden), 'it does not say that no agent is connected');
    await say(page, [summary('web')], { sessions: 2, synced: 2 });
    await summaryLine(page, until, '2 ReplicaSets: 1 working, 1 in sync.');
    // When an agent leaves a running server, its ReplicaSets disappear.
    await say(page, [], { sessions: 0, synced: 0, gone: ['north-shop-web north', 'north-shop-api-00 north'] });
    await until(page, 'that no agent is there', () => document.getElementById('empty').innerText.includes('No agent is connected'));
  },
};
