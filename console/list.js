// A list of thousands of rows. Only the visible rows are in the document. A row is as high as its text.

import { arrange, h, setAttribute } from './dom.js';

/** The number of extra rows above and below the visible ones. */
const BEYOND = 6;
/** The maximum number of rows on paper. */
const PRINTED_MAX = 1_000;
/** The maximum number of layout rounds. A row that becomes visible for the first time can be higher than expected. */
const ROUNDS_MAX = 3;
const STEPS = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity };

/**
 * Creates a list. `make(item)` returns the element of a row, whose `link` takes the focus; `fill(element, item)` updates the element.
 * `isTall(item)` returns whether a row has the height `--tall` instead of `--row`, before its text is known.
 * `press(item, key)` gets all other keys, and returns whether it handled the key.
 */
export function makeList({ make, fill, press, isTall }) {
  let items = [];
  /** The top of each row, and the bottom of the last one. */
  let tops = new Float64Array(1);
  /** The heights of rows that are higher than expected. */
  const heights = new Map();
  const shown = new Map();
  let [short, tall] = [0, 0];
  let width = 0;
  let current = null;

  const space = h('div', { class: 'space', role: 'rowgroup' });
  const element = h('div', { class: 'rows', role: 'presentation' }, space);
  element.addEventListener('keydown', move);

  function stack() {
    const style = getComputedStyle(element);
    [short, tall] = ['--row', '--tall'].map((name) => parseFloat(style.getPropertyValue(name)));
    if (element.clientWidth !== width) heights.clear();
    width = element.clientWidth;
    tops = new Float64Array(items.length + 1);
    for (let at = 0; at < items.length; at += 1) tops[at + 1] = tops[at] + (heights.get(items[at].key) ?? expected(items[at]));
    space.style.height = `${tops[items.length]}px`;
  }

  const expected = (item) => (isTall(item) ? tall : short);

  /** Returns the index of the row at a height. */
  function rowAt(height) {
    let [low, high] = [0, items.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (tops[middle + 1] <= height) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  function draw() {
    if (items.length === 0) {
      space.replaceChildren();
      shown.clear();
      return;
    }
    for (let round = 0; round < ROUNDS_MAX; round += 1) {
      stack();
      placeRows();
      if (!measure()) return;
    }
  }

  function placeRows() {
    const first = Math.max(0, rowAt(element.scrollTop) - BEYOND);
    const last = Math.min(items.length, rowAt(element.scrollTop + element.clientHeight) + 1 + BEYOND);
    const wanted = new Map();
    for (let at = first; at < last; at += 1) wanted.set(items[at].key, at);
    // The focused row stays in the document, even when it is not visible.
    const held = document.activeElement?.closest?.('[data-key]')?.dataset.key;
    if (held && shown.has(held) && !wanted.has(held)) {
      const at = items.findIndex((item) => item.key === held);
      if (at >= 0) wanted.set(held, at);
    }
    for (const [key, row] of shown) {
      if (wanted.has(key)) continue;
      row.remove();
      shown.delete(key);
    }
    if (!current || !items.some((item) => item.key === current)) current = items[first].key;
    // Screen readers read the rows in the order of the document.
    arrange(space, [...wanted].sort(([, a], [, b]) => a - b).map(([key, at]) => placeRow(key, at)));
  }

  function placeRow(key, at) {
    let row = shown.get(key);
    if (!row) {
      row = make(items[at]);
      row.dataset.key = key;
      shown.set(key, row);
    }
    row.style.transform = `translateY(${tops[at]}px)`;
    setAttribute(row, 'aria-rowindex', at + 2);
    setAttribute(row, 'data-at', at);
    fill(row, items[at]);
    setAttribute(row.link, 'tabindex', key === current ? 0 : -1);
    return row;
  }

  /** Measures the visible rows, and returns whether a height changed. */
  function measure() {
    let changed = false;
    for (const [key, row] of shown) {
      const usual = expected(items[Number(row.dataset.at)]);
      const height = Math.max(usual, row.offsetHeight);
      if (height === (heights.get(key) ?? usual)) continue;
      if (height === usual) heights.delete(key);
      else heights.set(key, height);
      changed = true;
    }
    return changed;
  }

  function move(event) {
    const row = event.target.closest('[data-at]');
    if (!row) return;
    const step = STEPS[event.key];
    if (step === undefined) {
      if (press(items[Number(row.dataset.at)], event.key)) event.preventDefault();
      return;
    }
    event.preventDefault();
    const at = Math.min(items.length - 1, Math.max(0, Number(row.dataset.at) + step));
    current = items[at].key;
    if (tops[at] < element.scrollTop) element.scrollTop = tops[at];
    else if (tops[at + 1] > element.scrollTop + element.clientHeight) element.scrollTop = tops[at + 1] - element.clientHeight;
    draw();
    shown.get(current)?.link.focus({ preventScroll: true });
  }

  return {
    element,
    draw,
    show(list) {
      items = list;
      draw();
    },
    /** Puts the rows for paper into the document, in order. Returns their number, and that of all rows. */
    print() {
      const printed = items.slice(0, PRINTED_MAX);
      arrange(space, printed.map(({ key }, at) => placeRow(key, at)));
      for (const { dataset, style, classList } of shown.values()) {
        style.order = dataset.at;
        classList.toggle('beyond', dataset.at >= PRINTED_MAX);
      }
      return [printed.length, items.length];
    },
    toTop() {
      element.scrollTop = 0;
    },
    /** Returns the place in the list, for `restore`. */
    place: () => ({ top: element.scrollTop, key: document.activeElement?.closest?.('[data-key]')?.dataset.key ?? current }),
    /** Scrolls to a place, and focuses its row unless something else has the focus. */
    restore({ top, key }) {
      element.scrollTop = top;
      if (items.some((item) => item.key === key)) current = key;
      draw();
      if (document.activeElement?.matches('#main, body')) shown.get(current)?.link.focus({ preventScroll: true });
    },
  };
}
