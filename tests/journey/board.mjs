// Opens groups of pages of the console, each in a separate window. Signs in if a group has a token, and waits until all of its pages are
// live, and one shows a text.

import path from 'node:path';
import { pathToFileURL } from 'node:url';

const { chromium, modules, groups } = JSON.parse(process.argv[2]);
const puppeteer = (await import(pathToFileURL(path.join(modules, 'puppeteer-core/lib/esm/puppeteer/puppeteer-core.js')).href)).default;
/** A timeout in milliseconds that only a hanging page reaches, even on a busy machine. */
const PATIENCE = 300_000;

const browser = await puppeteer.launch({ executablePath: chromium, args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'], protocolTimeout: 2 * PATIENCE });

async function open(url, token) {
  const page = await (await browser.createBrowserContext()).newPage();
  page.setDefaultTimeout(PATIENCE);
  await page.goto(url, { waitUntil: 'load' });
  if (token) {
    await page.waitForSelector('#token');
    await page.$eval('#token', (field, text) => {
      field.value = text;
      field.form.requestSubmit();
    }, token);
  }
  return page;
}

/** Waits until a page is live and shows a text. Fails with all that it shows. */
async function shows(page, text) {
  const is = (part) => document.getElementById('status')?.dataset.state === 'live' && document.getElementById('main')?.innerText.includes(part);
  for (const end = Date.now() + PATIENCE; !(await page.evaluate(is, text)); await new Promise((done) => setTimeout(done, 100))) {
    if (Date.now() > end) throw new Error(`${page.url()}: not within ${PATIENCE} ms: ${text}\n${await page.evaluate(() => document.body.innerText)}`);
  }
}

try {
  for (const { urls, token, wanted } of groups) {
    const pages = await Promise.all(urls.map((url) => open(url, token)));
    await Promise.all(pages.map((page) => shows(page, '')));
    await Promise.any(pages.map((page) => shows(page, wanted)));
  }
} catch (error) {
  process.stderr.write(`${[error, ...(error.errors ?? [])].join('\n')}\n`);
  process.exitCode = 1;
} finally {
  await browser.close();
}
