// Plays one story in Chromium. It gets its parameters as JSON. To change the cluster, it writes a line of JSON to standard
// output, and reads the response from standard input.

import fs from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';

import { causes } from './causes.mjs';
import { measured } from './frames.mjs';
import { makeUp } from './made-up.mjs';
import { pages as ofOthers } from './pages.mjs';
import { stories } from './stories.mjs';
import { subject } from './subject.mjs';
import { whatIf } from './what-if.mjs';

const { story, url, chromium, modules, pictures, document: moving } = JSON.parse(process.argv[2]);
const puppeteer = (await import(pathToFileURL(path.join(modules, 'puppeteer-core/lib/esm/puppeteer/puppeteer-core.js')).href)).default;

/** A timeout in milliseconds that only a hanging page reaches, even on a busy machine. */
const PATIENCE = Number(process.env.PATIENCE ?? 180_000);

const answers = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

/** Requests a change of the cluster and waits until it is done. */
async function act(what, fields = {}) {
  process.stdout.write(`${JSON.stringify({ do: what, ...fields })}\n`);
  return JSON.parse((await answers.next()).value);
}

const browser = await puppeteer.launch({ executablePath: chromium, args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'], protocolTimeout: 4 * PATIENCE });
const faults = [];
/** The browser errors that a story expects, such as those after it stops the server. */
let forgiven = [];

/** Opens a page. With `made`, the story answers instead of the server ([`makeUp`]); `before` runs before the page's scripts. */
async function open(hash = '', size = { width: 1280, height: 800 }, made = false, before = null) {
  const page = await browser.newPage();
  page.setDefaultTimeout(PATIENCE);
  const log = { requests: [], bytes: 0, files: 0 };
  page.on('console', (message) => ['error', 'warn'].includes(message.type()) && faults.push(`console: ${message.text()}`));
  page.on('pageerror', (error) => faults.push(`error: ${error.message}`));
  page.on('request', (request) => {
    log.requests.push(request.url());
    if (new URL(request.url()).origin !== new URL(url).origin) faults.push(`request beyond the server: ${request.url()}`);
  });
  // The first load is the files that the page requests before data.
  page.on('response', (response) => {
    const [at, data] = [log.requests.indexOf(response.url()), log.requests.findIndex((request) => request.includes('/api/'))];
    if (data >= 0 && at > data) return;
    log.files += 1;
    log.bytes += Number(response.headers()['content-length'] ?? 0);
  });
  await page.evaluateOnNewDocument(() => {
    window.violations = [];
    document.addEventListener('securitypolicyviolation', (event) => window.violations.push(`${event.violatedDirective}: ${event.blockedURI}`));
  });
  if (made) await page.evaluateOnNewDocument(makeUp);
  if (before) await page.evaluateOnNewDocument(before);
  await page.setViewport(size);
  await page.goto(url + hash, { waitUntil: 'load' });
  return Object.assign(page, { log });
}

/** Waits until a function of the page returns a true value, and returns that value. An element that is not there yet, and a page that loads, are waited for. */
async function until(page, what, check, ...args) {
  let last = 'it returned nothing';
  for (const end = Date.now() + PATIENCE; Date.now() < end; await new Promise((done) => setTimeout(done, 50))) {
    try {
      const found = await page.evaluate(check, ...args);
      if (found) return found;
    } catch (error) {
      last = error.message;
      if (!/properties of (null|undefined)|context was destroyed/.test(last)) break;
    }
  }
  const shown = await page.evaluate(() => document.body.innerText);
  throw new Error(`not shown: ${what}\n${last}\nThe page shows:\n${shown}`);
}

/** Waits until a row of the board contains a text, and returns the text of the row. */
function row(page, name, text) {
  return until(page, `${name}: ${text}`, (wanted, part) => {
    const found = [...document.querySelectorAll('.space .row')].find((one) => one.querySelector('.name')?.textContent === wanted);
    return found && found.innerText.replace(/\s+/g, ' ').includes(part) && found.innerText;
  }, name, text);
}

/** Fails if a page is not accessible, or wider than its window. */
async function audit(page, name, axe) {
  await page.evaluate(axe);
  const { violations: found } = await page.evaluate(() => window.axe.run({ runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] }));
  const told = found.map((one) => `${one.id}: ${one.help}: ${one.nodes.map((node) => `${node.html} ${node.failureSummary}`).join(' | ')}`);
  assert(told.length === 0, `${name}:\n${told.join('\n')}`);
  const [width, room] = await page.evaluate(() => [document.documentElement.scrollWidth, window.innerWidth]);
  assert(width <= room, `${name} is ${width} wide on ${room}`);
}

async function picture(page, name) {
  fs.mkdirSync(pictures, { recursive: true });
  await page.screenshot({ path: path.join(pictures, `${name}.png`) });
}

/** Photographs a step of the animated picture. */
async function photograph(page, step) {
  fs.mkdirSync(pictures, { recursive: true });
  await page.screenshot({ path: path.join(pictures, `step-${step}.webp`), type: 'webp', quality: 70 });
}

function assert(holds, what) {
  if (!holds) throw new Error(what);
}

const violations = [];
try {
  const axe = fs.readFileSync(path.join(modules, 'axe-core/axe.min.js'), 'utf8');
  const forgive = (...patterns) => (forgiven = patterns);
  await { ...stories, ...causes, ...subject, ...measured, ...ofOthers, ...whatIf }[story]({ open, until, row, act, picture, photograph, moving, assert, audit, axe, url, forgive });
  for (const page of await browser.pages()) violations.push(...((await page.evaluate(() => window.violations).catch(() => [])) ?? []));
  const left = [...violations, ...faults].filter((fault) => !forgiven.some((pattern) => pattern.test(fault)));
  assert(left.length === 0, `left behind:\n${left.join('\n')}`);
} catch (error) {
  process.stderr.write(`${story}: ${error.stack}\n${faults.join('\n')}\n`);
  process.exitCode = 1;
} finally {
  await browser.close();
  process.stdout.write(`${JSON.stringify({ do: 'end' })}\n`);
  process.stdin.destroy();
}
