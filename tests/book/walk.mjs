// Opens each page of the site, narrow and wide, and fails with all faults: pages that are wider than the screen, missing pictures,
// and findings of axe. A full walk runs axe on each page for all four combinations of screen and mode; any other walk runs one of the four in turn,
// not on the page that has all others, and opens each page on a narrow screen.

import fs from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const { site, pages, chromium, modules, full } = JSON.parse(process.argv[2]);
const puppeteer = (await import(pathToFileURL(path.join(modules, 'puppeteer-core/lib/esm/puppeteer/puppeteer-core.js')).href)).default;
const axe = fs.readFileSync(path.join(modules, 'axe-core/axe.min.js'), 'utf8');
const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
const WIDTHS = [360, 1280];
/** The page for printing, which has all others. */
const ALL = 'print.html';
const MODES = [['light', 'light'], ['dark', 'navy']];
/** A timeout in milliseconds that only a hanging page reaches, even on a busy machine. */
const PATIENCE = 600_000;

const browser = await puppeteer.launch({ executablePath: chromium, args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu', '--allow-file-access-from-files'], protocolTimeout: PATIENCE });
const faults = [];

async function look(page, name, width, [scheme, theme], asks) {
  const place = `${name}, ${scheme}, ${width}`;
  await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }]);
  await page.setViewport({ width, height: 800 });
  await page.goto(pathToFileURL(path.join(site, name)).href, { waitUntil: 'load' });
  const shown = await page.evaluate(() => {
    const root = document.documentElement;
    const absent = [...document.images].filter((image) => image.naturalWidth === 0).map((image) => image.src);
    return { themes: [...root.classList], surplus: root.scrollWidth - root.clientWidth, absent };
  });
  if (!shown.themes.includes(theme)) faults.push(`${place}: its theme is ${shown.themes}`);
  if (shown.surplus > 0) faults.push(`${place}: ${shown.surplus} px wider than the screen`);
  if (shown.absent.length > 0) faults.push(`${place}: no picture ${shown.absent}`);
  if (!asks) return;
  await page.evaluate(axe);
  const { violations } = await page.evaluate((rules) => window.axe.run({ runOnly: rules }), RULES);
  for (const { id, help, nodes } of violations) {
    const parts = nodes.slice(0, 3).map((node) => `${node.html.slice(0, 200)} ${node.failureSummary}`);
    faults.push(`${place}: ${id}: ${help}: ${nodes.length} times: ${parts.join(' | ')}`);
  }
}

/** Walks the pages that no other window has taken. */
async function walk(taken) {
  const page = await (await browser.createBrowserContext()).newPage();
  page.setDefaultTimeout(PATIENCE);
  page.on('pageerror', (error) => faults.push(`${page.url()}: ${error.message}`));
  for (const [number, name] of taken) {
    for (const [of, mode] of MODES.entries()) {
      if (!full && number % 2 !== of) continue;
      for (const [which, width] of WIDTHS.entries()) {
        const asks = full || ((number >> 1) % 2 === which && name !== ALL);
        // What fits a narrow screen seldom is too wide for a wide one.
        if (asks || which === 0) await look(page, name, width, mode, asks);
      }
    }
  }
}

try {
  const taken = pages.entries();
  await Promise.all([walk(taken), walk(taken)]);
} finally {
  await browser.close();
}
if (faults.length > 0) {
  process.stderr.write(`${faults.join('\n')}\n`);
  process.exitCode = 1;
}
