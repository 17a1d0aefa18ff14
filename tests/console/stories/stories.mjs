// The stories, by the names of their tests.

import fs from 'node:fs';
import { pathToFileURL } from 'node:url';

import { CHANGES, FRAMES, scrollAndCount } from './frames.mjs';

/** The maximum number of bytes that a browser loads before it shows the board. */
const FIRST_LOAD_MAX = 150_000;
/** The maximum number of rows in the document out of thousands, and the maximum number of changes in a frame for each. */
const ROWS_MAX = 60;
const MUTATIONS_MAX = 20;
const SUBJECT = '#/replicasets/shop/default/shop-7d4b9c';
const VIEWS = [['board', '', '.space .row'], ['replica-set', `${SUBJECT}?replicas=5`, '#would li'], ['what-if', '#/what-if/drain?node=node-b', '#affected tbody'], ['what-if-scale', '#/what-if/scale?replica-set=default%2Fapi&replicas=2', '#would li'], ['what-if-quota', '#/what-if/quota?namespace=default&pods=3', '#what-if-answer:not(:empty)'], ['sessions', '#/sessions', '.sessions meter'], ['differences', '#/differences', '#empty p']];
const DARK = [{ name: 'prefers-color-scheme', value: 'dark' }];
const WIDE = { width: 1280, height: 800 };
const LARGE = { width: 1440, height: 900 };
const NARROW = { width: 360, height: 740 };
/** The size of the pictures in the documents. */
const PICTURE = { width: 1180, height: 900 };

const answered = (page, until) => until(page, 'an answer', () => document.querySelectorAll('#would li').length > 0);
const victims = (page) => page.$$eval('#would li .pod', (pods) => pods.map((pod) => pod.textContent));
const status = (page, until, text) => until(page, `the status ${text}`, (wanted) => document.getElementById('status-text')?.textContent === wanted, text);

const text = (page, selector) => page.$eval(selector, (element) => element.innerText);

export const stories = {
  async unready_pods_are_grouped_by_their_reason({ open, until, row, act }) {
    const page = await open();
    for (const [name, pods] of [['api', 4], ['web-5f6a8b', 3]]) {
      await row(page, name, `${pods}/${pods} ready`);
      await act('hold', { name });
    }
    await until(page, 'one row for both', () => {
      const group = document.querySelector('.row.group')?.innerText.replace(/\s+/g, ' ') ?? '';
      return ['2 ReplicaSets in default', '0/7 ready', 'Pods not ready: ImagePullBackOff'].every((part) => group.includes(part));
    });
  },

  async board_follows_the_cluster({ open, until, row, act, picture, assert, url }) {
    const page = await open();
    for (const [name, replicas] of [['api', 4], ['shop-7d4b9c', 8], ['web-5f6a8b', 3]]) await row(page, name, `${replicas}/${replicas} ready`);
    await row(page, 'api', 'In sync');
    assert(await page.$eval('.table', (table) => table.clientWidth === table.querySelector('.space .row').offsetWidth), 'the lines of a short board end at its edge');
    assert(page.log.bytes > 0 && page.log.bytes <= FIRST_LOAD_MAX, `the first load takes ${page.log.bytes} bytes`);
    const origin = new URL(url).origin;
    assert(page.log.requests.every((request) => request.startsWith(origin)), 'a request left the server');

    await act('scale', { name: 'api', replicas: 6 });
    await row(page, 'api', '6/6 ready');
    await act('kill', { name: 'api' });
    await row(page, 'api', '/6 ready');
    await row(page, 'api', '6/6 ready');

    await act('quota', { pods: 17 });
    await act('scale', { name: 'web-5f6a8b', replicas: 5 });
    await row(page, 'web-5f6a8b', '· next attempt');
    const refused = await row(page, 'web-5f6a8b', 'Blocked');
    assert(/quota/i.test(refused) && refused.includes('3/5 ready'), refused);
    await act('break', { name: 'broken' });
    await row(page, 'broken', 'Blocked');
    await until(page, 'the longest unconverged first, and the blocked in the title', () => document.querySelector('.space .row[aria-rowindex="2"] .name').textContent === 'web-5f6a8b' && document.title === '(2) Board · Decree');
    await picture(page, 'board');

    await page.click('input[value="blocked"]');
    await until(page, 'the blocked rows', () => [...document.querySelectorAll('.space .row .name')].map((name) => name.textContent).sort().join(' ') === 'broken web-5f6a8b');
    assert(page.url().endsWith('show=blocked'), page.url());
    await page.click('input[value="all"]');
    await page.type('#search', 'web default');
    await until(page, 'the found row', () => document.querySelectorAll('.space .row').length === 1 && document.querySelector('.space .name').textContent === 'web-5f6a8b');
    const shared = await open(new URL(page.url()).hash);
    await row(shared, 'web-5f6a8b', '/5 ready');
    assert((await shared.$$('.space .row')).length === 1, 'a shared address shows the same');
    await page.bringToFront();
    await page.type('#search', ' no such');
    await until(page, 'that nothing is found', () => document.getElementById('empty').innerText.includes('Nothing found'));

    await act('unlimit');
    await shared.bringToFront();
    await row(shared, 'web-5f6a8b', '5/5 ready');
  },

  async scale_down_is_foretold_and_explained({ open, until, row, act, picture, photograph, assert }) {
    const page = await open('', PICTURE);
    await row(page, 'shop-7d4b9c', '8/8 ready');
    await page.evaluate(() => [...document.querySelectorAll('.name')].find((name) => name.textContent === 'shop-7d4b9c').closest('a').click());
    await until(page, 'its pods', () => document.querySelectorAll('.chip').length === 8);
    await until(page, 'its sentence', () => document.querySelector('.standing .state').innerText.includes('In sync'));

    await act('own', { name: 'shop-7d4b9c' });
    await act('vary', { name: 'shop-7d4b9c', costs: 2 });
    await until(page, 'a pod that is not ready', () => document.querySelector('.chip[data-kind="unready"]') !== null && document.querySelector('.standing .numbers').textContent === '7/8 ready');
    await photograph(page, 1);
    await page.focus('#scale');
    for (let step = 0; step < 3; step += 1) await page.keyboard.press('ArrowLeft');
    await until(page, 'the forecast', () => document.getElementById('answer').textContent === 'At 5, 3 pods would be deleted.');
    const foretold = await victims(page);
    const rules = await page.$$eval('#would .rule', (found) => found.map((rule) => rule.textContent));
    assert(String(rules.slice(0, 2)) === 'NOT_READY,DELETION_COST', `they are chosen by ${rules}`);
    assert(foretold.length === 3 && page.url().endsWith('replicas=5'), `${foretold} at ${page.url()}`);
    await until(page, 'the marked pods', () => document.querySelectorAll('.chip[data-victim="true"]').length === 3);
    await page.click('#would button');
    await until(page, 'what would keep the first', () => document.getElementById('pod-keep').textContent.startsWith('At 5 replicas, '));
    await page.mouse.move(0, 0);
    await picture(page, 'what-if');
    await photograph(page, 2);

    await act('scale', { name: 'shop-7d4b9c', replicas: 5 });
    await until(page, 'the last scale-down', () => /^Last scale-down.*, 3 pods$/.test(document.getElementById('why-title').textContent));
    const gone = await page.$$eval('#ranks .victim .pod', (pods) => pods.map((pod) => pod.textContent));
    assert(String(gone) === String(foretold), `${gone} went, and ${foretold} were foretold`);
    assert((await page.$$('#ranks .victim .deciding')).length > 0, 'a rule decided');
    await until(page, 'the timeline', () => {
      const text = document.getElementById('timeline').innerText;
      return ['Change: desired 8 → 5', 'Decision: delete 3 pods', 'Operation: delete ', 'Outcome: '].every((part) => text.includes(part));
    });
    await until(page, 'the pods that stay', () => document.querySelectorAll('.chip').length === 5);
    await until(page, 'that the forecast follows', () => document.getElementById('answer').textContent === 'At 5, no pod would be created or deleted.');
    await until(page, 'that the pod of the card is gone', () => document.getElementById('pod-order').textContent.startsWith('The last scale-down deleted it. NOT_READY: '));
    await photograph(page, 3);
    await page.click('#scale-number', { clickCount: 3 });
    await page.keyboard.type('3');
    await until(page, 'the next forecast', () => document.getElementById('answer').textContent === 'At 3, 2 pods would be deleted.' && document.querySelectorAll('.chip[data-victim="true"]').length === 2);
    await picture(page, 'replica-set');

    await act('quota', { pods: 1 });
    await act('scale', { name: 'shop-7d4b9c', replicas: 7 });
    await until(page, 'the refusal', () => document.querySelector('.standing .state').innerText.includes('Blocked') && /quota/i.test(document.getElementById('sentence').textContent));
    await until(page, 'the refusal in the timeline', () => document.getElementById('timeline').innerText.includes('failed (QUOTA)'));
  },

  async picture_of_the_readme_moves({ open, moving, assert, forgive }) {
    forgive(/^request beyond the server: (file|data):/);
    const page = await open('#/sessions');
    await page.goto(pathToFileURL(moving).href);
    const shown = (seconds) => page.evaluate((time) => {
      for (const animation of document.getAnimations()) {
        animation.pause();
        animation.currentTime = 1000 * time;
      }
      return [...document.querySelectorAll('.step')].map((step) => Number(getComputedStyle(step).opacity));
    }, seconds);
    for (const [seconds, step] of [[0, 0], [5, 1], [9, 2], [13, 0]]) {
      const opacities = await shown(seconds);
      assert(opacities.length === 3 && opacities.every((opacity, at) => opacity === (at === step ? 1 : 0)), `after ${seconds} s: ${opacities}`);
    }
    const sizes = await page.evaluate(() => Promise.all([...document.querySelectorAll('image')].map((image) => image.decode().then(() => image.getBBox().width))));
    assert(String(sizes) === String([PICTURE.width, PICTURE.width, PICTURE.width]), `photographs are ${sizes} wide`);
    await page.emulateMediaFeatures([{ name: 'prefers-reduced-motion', value: 'reduce' }]);
    assert((await page.evaluate(() => document.getAnimations().length)) === 0, 'it stands still where that is asked for');
    assert(String(await shown(0)) === '0,1,0', 'and shows the victims');

    // An image does not know the reduced-motion setting, so the README names the still itself.
    const root = new URL('..', pathToFileURL(moving));
    const readme = fs.readFileSync(new URL('README.md', root), 'utf8').split('\n').find((line) => line.startsWith('<picture>'));
    for (const [value, name] of [['reduce', 'console.png'], ['no-preference', 'console.svg']]) {
      await page.emulateMediaFeatures([{ name: 'prefers-reduced-motion', value }]);
      await page.goto(new URL('LICENSE', root).href);
      const source = await page.evaluate(async (html) => {
        document.body.innerHTML = html;
        const image = document.querySelector('img');
        await image.decode();
        return image.currentSrc;
      }, readme);
      assert(source.endsWith(`/docs/${name}`), `${source} is shown with ${value}`);
    }
  },

  async what_led_here_is_told_to_who_opens_the_page_later({ open, until, row, act, picture, assert }) {
    const board = await open();
    for (const [name, replicas] of [['api', 4], ['shop-7d4b9c', 8], ['web-5f6a8b', 3]]) await row(board, name, `${replicas}/${replicas} ready`);
    await act('scale', { name: 'shop-7d4b9c', replicas: 5 });
    await row(board, 'shop-7d4b9c', '5/5 ready');
    await act('quota', { pods: 12 });
    await act('scale', { name: 'web-5f6a8b', replicas: 5 });
    await row(board, 'web-5f6a8b', 'Blocked');

    const page = await open(SUBJECT);
    await until(page, 'its timeline', () => document.getElementById('timeline').innerText.includes('Outcome: 3 of 3 deletes done'));
    const told = await page.$$eval('#timeline > li .text', (entries) => entries.map((entry) => entry.textContent));
    const at = ['Outcome: 3 of 3 deletes done', 'Operation: delete ', 'Decision: delete 3 pods', 'Change: desired 8 → 5', 'Outcome: 8 of 8 creates done'].map((part) => told.findIndex((entry) => entry.startsWith(part)));
    assert(!at.includes(-1) && String(at) === String([...at].sort((a, b) => a - b)), `${at} of\n${told.join('\n')}`);
    await page.setViewport({ width: 1180, height: 1500 });
    await picture(page, 'timeline');

    const refused = await open('#/replicasets/shop/default/web-5f6a8b');
    await until(refused, 'refusals as one', () => /Outcome: 0 of 2 creates done, 1 failed \(QUOTA\), 1 not started, \d+ times since \d\d:\d\d:\d\d .*exceeded quota/.test(document.getElementById('timeline').innerText));
    const changes = await refused.$$eval('#timeline > li', (entries) => entries.filter((entry) => entry.textContent.includes('Change: desired 3 → 5')).length);
    assert(changes === 1, `the change is told ${changes} times`);
    const outcomes = () => refused.$$eval('#timeline > li', (entries) => entries.filter((entry) => entry.textContent.includes('failed (QUOTA)')).length);
    assert((await outcomes()) === 1, 'refusals that are the same are one entry');
    await act('unlimit');
    await until(refused, 'the end', () => document.getElementById('timeline').innerText.includes('Outcome: 2 of 2 creates done'));
    assert((await outcomes()) === 1, 'and stay there');
  },

  async keyboard_alone_reaches_everything({ open, until, row, act, assert, audit, axe, picture }) {
    const page = await open();
    await row(page, 'web-5f6a8b', '3/3 ready');
    const focused = () => page.evaluate(() => document.activeElement.innerText || document.activeElement.id);
    await page.keyboard.press('Tab');
    assert((await focused()) === 'Skip to content', await focused());
    await page.keyboard.press('Enter');
    assert((await focused()).length > 0 && page.url().indexOf('#main') < 0, 'the content has the focus');
    await page.keyboard.press('/');
    await page.keyboard.type('?');
    assert((await page.evaluate(() => document.activeElement.id)) === 'search' && (await page.$('dialog[open]')) === null, 'a slash leads to the search, which takes all letters');
    await page.keyboard.press('Backspace');
    await row(page, 'api', '4/4 ready');
    for (let step = 0; step < 20 && !(await focused()).includes('api'); step += 1) await page.keyboard.press('Tab');
    assert((await focused()).includes('api'), `the first row has the focus, and not ${await focused()}`);
    await page.keyboard.press('?');
    await until(page, 'the keys', () => document.querySelector('dialog[open]').contains(document.activeElement));
    for (const size of [NARROW, WIDE]) {
      await page.setViewport(size);
      for (const features of [DARK, []]) {
        await page.emulateMediaFeatures(features);
        await audit(page, `the keys, ${size.width}`, axe);
      }
    }
    await picture(page, 'keys');
    await page.keyboard.press('Escape');
    await until(page, 'that the keys are closed', () => document.querySelector('dialog[open]') === null);
    assert((await focused()).includes('api'), `the focus is back, and not at ${await focused()}`);
    await page.keyboard.press('ArrowDown');
    assert((await focused()).includes('shop-7d4b9c'), await focused());
    await page.keyboard.press('End');
    assert((await focused()).includes('web-5f6a8b'), await focused());

    // The rows change their order, and the focus stays with its row.
    await act('quota', { pods: 15 });
    await act('scale', { name: 'web-5f6a8b', replicas: 4 });
    await row(page, 'web-5f6a8b', 'Blocked');
    await until(page, 'the row on top', () => document.querySelector('.space .row[aria-rowindex="2"] .name').textContent === 'web-5f6a8b');
    assert((await focused()).includes('web-5f6a8b'), await focused());
    const order = await page.$$eval('.space .row', (rows) => rows.map((one) => Number(one.ariaRowIndex)));
    assert(String(order) === String([...order].sort((a, b) => a - b)), `a screen reader reads the rows ${order}`);

    await page.keyboard.press('Enter');
    await until(page, 'its page', () => document.querySelector('h1').textContent === 'web-5f6a8b' && document.querySelectorAll('.chip').length === 3);
    for (let step = 0; step < 20 && (await focused()) !== 'scale'; step += 1) await page.keyboard.press('Tab');
    assert((await focused()) === 'scale', 'the slider is reached');
    await page.keyboard.press('Home');
    await until(page, 'the forecast', () => document.getElementById('answer').textContent === 'At 0, 3 pods would be deleted.');
    await act('unlimit');
    await until(page, 'a live update', () => document.querySelectorAll('.chip').length === 4);
    assert((await focused()) === 'scale', 'the focus stays where it was');
    await page.goBack();
    await row(page, 'web-5f6a8b', '4/4 ready');
  },

  async pages_fit_narrow_screens_and_dark_rooms({ open, until, act, picture, assert }) {
    for (const [scheme, features] of [['light', []], ['dark', DARK]]) {
      for (const [name, hash, ready] of VIEWS) {
        const page = await open(hash, NARROW);
        await page.emulateMediaFeatures(features);
        await until(page, name, (selector) => document.querySelector(selector) !== null, ready);
        const [width, ground] = await page.evaluate(() => [document.documentElement.scrollWidth, getComputedStyle(document.body).backgroundColor]);
        assert(width <= NARROW.width, `${name} is ${width} wide`);
        const light = ground.match(/\d+/g).map(Number).reduce((sum, part) => sum + part) > 3 * 128;
        assert(light === (scheme === 'light'), `${name} in ${scheme} is on ${ground}`);
        await picture(page, `narrow-${name}-${scheme}`);
        await page.close();
      }
    }
    // Text repeats the meaning of every color.
    const page = await open();
    await act('quota', { pods: 15 });
    await act('scale', { name: 'api', replicas: 9 });
    await until(page, 'words for the state', () => [...document.querySelectorAll('.space .row')].some((row) => row.querySelector('.state').innerText.includes('Blocked') && row.querySelector('.numbers').innerText.includes('4/9 ready')));
  },

  async nothing_bars_anyone_from_any_view({ open, until, act, picture, audit, axe }) {
    await act('break', { name: 'broken' });
    const warm = await open(SUBJECT);
    await until(warm, 'its pods', () => document.querySelectorAll('.chip').length === 8);
    await act('scale', { name: 'shop-7d4b9c', replicas: 6 });
    await until(warm, 'the last scale-down', () => /, 2 pods$/.test(document.getElementById('why-title').textContent));
    for (const [name, hash, ready] of VIEWS) {
      const page = await open(hash, WIDE);
      await until(page, name, (selector) => document.querySelector(selector) !== null, ready);
      for (const [scheme, features] of [['light', []], ['dark', DARK]]) {
        await page.emulateMediaFeatures(features);
        for (const size of [NARROW, LARGE, WIDE]) {
          await page.setViewport(size);
          await audit(page, `${name}, ${scheme}, ${size.width}`, axe);
        }
        await picture(page, `${name}-${scheme}`);
      }
      await page.close();
    }
  },

  async what_is_wrong_with_the_connection_is_told({ open, until, row, act, assert, audit, axe, picture, forgive }) {
    forgive(/ERR_(CONNECTION_REFUSED|INCOMPLETE_CHUNKED_ENCODING|CONNECTION_RESET|EMPTY_RESPONSE|CONNECTION_CLOSED)/, /status of 503/);
    const page = await open();
    await row(page, 'api', '4/4 ready');
    await status(page, until, 'Live');
    await act('stop agent');
    await until(page, 'that no agent is there', () => document.getElementById('empty').innerText.includes('No agent is connected'));
    await act('start agent');
    await row(page, 'api', '4/4 ready');
    await until(page, 'the scripts of other views', () => ['what-if', 'differences'].every((name) => performance.getEntriesByType('resource').some((one) => one.name.endsWith(`/${name}.js`))));
    await act('stop server');
    await status(page, until, 'Reconnecting…');
    const notice = await page.$eval('#notice', (element) => element.innerText);
    assert(/Not connected: .*The page shows the state of \d\d:\d\d:\d\d/.test(notice), notice);
    await row(page, 'api', '4/4 ready');
    // A view that was open before keeps what is known. Another says that it has nothing.
    await page.click('nav a[data-view="differences"]');
    await until(page, 'that nothing is known', () => document.querySelector('#notice h1')?.textContent === 'Not connected' && document.title.startsWith('Differences') && !document.body.innerText.includes('Loading'));
    await audit(page, 'a view without data', axe);
    await page.click('nav a[data-view="board"]');
    await row(page, 'api', '4/4 ready');
    await until(page, 'the time of what is known', () => /The page shows the state of \d\d:\d\d:\d\d/.test(document.getElementById('notice').innerText));
    await picture(page, 'not-connected');
    await act('start server');
    await status(page, until, 'Live');
    await row(page, 'api', '4/4 ready');
    assert(await page.$eval('#notice', (element) => element.hidden), 'the notice is gone');
    const absent = await open('#/replicasets/shop/default/none');
    await until(absent, 'that it is not there', () => document.getElementById('empty').innerText.includes('ReplicaSet not found'));
  },

  async what_limits_hold_back_is_shown_until_when({ open, until, row, act, picture, assert }) {
    const page = await open();
    for (const [name, replicas] of [['api', 4], ['shop-7d4b9c', 8], ['web-5f6a8b', 3]]) await row(page, name, `${replicas}/${replicas} ready`);
    await act('throttle');
    await act('scale', { name: 'api', replicas: 6 });
    await row(page, 'api', '· next attempt in');
    await act('scale', { name: 'shop-7d4b9c', replicas: 5 });
    await row(page, 'shop-7d4b9c', '6/5 ready');
    await row(page, 'shop-7d4b9c', 'Blocked');
    await page.focus('input[value="all"]');
    for (let step = 0; step < 2; step += 1) await page.keyboard.press('ArrowRight');
    assert(page.url().endsWith('show=blocked'), page.url());
    await row(page, 'shop-7d4b9c', '· next attempt');
    await picture(page, 'held');
    const shared = await open(new URL(page.url()).hash);
    await row(shared, 'shop-7d4b9c', 'Blocked');
    await shared.evaluate(() => [...document.querySelectorAll('.name')].find((name) => name.textContent === 'shop-7d4b9c').closest('a').click());
    await until(shared, 'what to do', () => document.querySelector('#next code').textContent === 'decree resume default/shop-7d4b9c');
    await until(shared, 'its sentence', () => / · next attempt/.test(document.getElementById('sentence').textContent));
    await shared.close();

    // A resolved hold leaves the filter: a person resumes one, and a new session does not know the other.
    await act('resume', { name: 'shop-7d4b9c' });
    await until(page, 'that it is not blocked', () => ![...document.querySelectorAll('.space .row .name')].some((name) => name.textContent === 'shop-7d4b9c'));
    await act('unthrottle');
    await act('stop agent');
    await act('start agent');
    await page.click('input[value="all"]');
    await row(page, 'api', '6/6 ready');
  },

  async shadow_shows_its_differences({ open, until, act, picture }) {
    const page = await open('#/differences');
    await until(page, 'that nothing differs', () => document.getElementById('empty').innerText.includes('No differences'));
    await act('foreign', { name: 'api-x' });
    await until(page, 'what differs', () => document.querySelector('#differences tr')?.innerText.includes('default/api'));
    await picture(page, 'differences');
    await page.click('#differences a');
    await until(page, 'its page', () => document.querySelector('h1').textContent === 'api');
  },

  async recording_is_replayed_step_by_step({ open, until, picture, audit, axe, assert }) {
    const page = await open();
    await until(page, 'its first step', () => document.getElementById('step-title')?.textContent === 'the agent opens the session');
    assert((await text(page, '#summary')).includes('1-agent-stopped.recording.gz: all agree ('), await text(page, '#summary'));
    assert((await text(page, '#answers')) === 'a welcome', await text(page, '#answers'));
    assert((await page.evaluate(() => document.activeElement.id)) === 'step', 'the keys step at once');
    const asked = page.log.requests.length;
    const title = () => page.$eval('#step-title', (element) => element.textContent);
    const table = () => text(page, '.player tbody');
    /** Steps until the answer contains a text. */
    const stepTo = (part) => page.evaluate((wanted) => {
      const next = [...document.querySelectorAll('button')].find((button) => button.textContent === 'Next');
      while (!next.disabled && !document.getElementById('answers').textContent.includes(wanted)) next.click();
    }, part);

    await stepTo('; TOO_FEW_REPLICAS');
    assert(/^recorded\/web: create 4: web-.+, web-.+, web-.+, web-.+; TOO_FEW_REPLICAS/.test(await text(page, '#answers')), await text(page, '#answers'));
    assert(/^recorded\/web (0 → )?4 0 0 0 0 → 4$/.test((await table()).replace(/\s+/g, ' ').trim()), await table());
    const created = await title();
    await page.keyboard.press('ArrowLeft');
    assert((await title()) !== created, 'the key steps back');
    await page.keyboard.press('ArrowRight');
    assert((await title()) === created && (await table()).includes('0 → 4'), 'back and forth leads to the same');

    await stepTo(' (DELETION_COST: deletion cost ');
    await picture(page, 'recording');
    const [down, place] = [await table(), await page.$eval('#step', (slider) => slider.value)];
    assert(down.includes('→'), down);
    await page.focus('#step');
    await page.keyboard.press('End');
    await until(page, 'the end', () => document.getElementById('step-title').textContent === 'the recording ends');
    assert((await text(page, '#came')) === 'the session ends: CLOSED_BY_AGENT', await text(page, '#came'));
    await page.keyboard.press('Home');
    await until(page, 'the beginning', () => document.querySelectorAll('.player tbody tr').length === 0);
    await page.$eval('#step', (slider, step) => {
      slider.value = step;
      slider.dispatchEvent(new Event('input'));
    }, place);
    assert((await table()) === down, 'a step is the same from wherever it is reached');
    assert(page.log.requests.length === asked, `nothing else is requested: ${page.log.requests.slice(asked)}`);

    for (const features of [[], DARK]) {
      for (const size of [WIDE, NARROW]) {
        await page.setViewport(size);
        await page.emulateMediaFeatures(features);
        await audit(page, `a recording, ${size.width}`, axe);
      }
    }
    await picture(page, 'narrow-recording-open-dark');
  },

  async token_opens_the_pages({ open, until, row, act, assert, audit, axe, forgive, picture }) {
    forgive(/status of 40[13]/);
    const page = await open();
    await until(page, 'the login', () => document.activeElement.id === 'token');
    assert((await page.$$('.space .row')).length === 0, 'nothing is shown before');
    assert(!(await page.evaluate(() => document.body.innerText)).includes('Loading'), 'it does not claim that something loads');
    for (const size of [NARROW, WIDE]) {
      await page.setViewport(size);
      for (const features of [[], DARK]) {
        await page.emulateMediaFeatures(features);
        await audit(page, `the login, ${size.width}`, axe);
      }
    }
    await picture(page, 'login');
    await page.type('#token', 'ключ');
    await page.click('.login button');
    await until(page, 'that it is no token', () => document.querySelector('.said')?.innerText.endsWith('it must be printable ASCII'));
    await page.type('#token', 'nonsense');
    await page.click('.login button');
    await until(page, 'that it does not count', () => document.querySelector('.said')?.innerText.startsWith('The token is not valid'));
    const stranger = await act('token', { name: 'stranger' });
    await page.type('#token', stranger.token);
    await page.click('.login button');
    await status(page, until, 'Not allowed');
    await page.click('#notice button');
    const viewer = await act('token', { name: 'viewer' });
    // As a terminal breaks it into lines.
    await page.type('#token', `${viewer.token.slice(0, 20)}\n${viewer.token.slice(20)}`);
    await page.click('.login button');
    await row(page, 'api', '4/4 ready');
    const kept = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, location.href]));
    assert(!kept.includes(viewer.token), 'the token is in memory alone');
    await page.reload();
    await until(page, 'the login again', () => document.activeElement.id === 'token');
  },

  async page_without_a_grant_says_which_one_it_lacks({ open, until, assert, forgive }) {
    forgive(/status of 403/);
    const page = await open();
    await until(page, 'the missing grant', () => document.getElementById('notice').innerText.includes('grants `console` no role'));
    assert((await page.$$('.space .row')).length === 0, 'nothing is shown');
    assert((await page.$$('#notice button')).length === 0, 'it asks for no token');
  },

  async board_of_thousands_stays_smooth({ open, until, assert }) {
    const page = await open('#/?sort=name');
    await until(page, 'all rows', () => document.getElementById('summary').textContent.startsWith('5,003 ReplicaSets'));
    const { rows, mutations, gaps, scrolled } = await page.evaluate(scrollAndCount, FRAMES, CHANGES);
    assert(rows < ROWS_MAX, `${rows} rows are in the document`);
    assert(mutations <= ROWS_MAX * MUTATIONS_MAX, `a frame changes the document ${mutations} times`);
    assert(scrolled > 0 && gaps === 0, `after ${scrolled} pixels, rows in sight were missing in ${gaps} frames`);
    const [name, numbers] = await page.evaluate(() => {
      const row = document.querySelector('.space .row');
      return [row.querySelector('.name').textContent, row.querySelector('.numbers').textContent];
    });
    await until(page, `that the row of ${name} changes`, (wanted, before) => {
      const row = [...document.querySelectorAll('.space .row')].find((one) => one.querySelector('.name').textContent === wanted);
      return row && row.querySelector('.numbers').textContent !== before;
    }, name, numbers);
  },
};
