// All ReplicaSets in one picture: one cell each, by cluster, namespace and name. Color and shape show the severity.

import { SEVERITIES } from './cause.js';
import { h, setAttribute, setText } from './dom.js';
import { count } from './format.js';

/** The maximum height of the picture, and the bounds of a cell's width. Cells are as large as fits. */
const HEIGHT_MAX = 96;
const [CELL_MIN, CELL_MAX] = [3, 16];
/** The least number of ReplicaSets that make a picture. */
const CELLS_MIN = 20;
/** The width of the frame. */
const FRAME = 14;
const COLORS = { BLOCKED: '--bad', SLOW: '--wait', WORKING: '--busy', IN_SYNC: '--good' };

/** Creates the picture. It calls `open` with the ReplicaSet that a person chooses. */
export function makeHeat(open) {
  let entries = [];
  let drawn = '';
  let grid = { cell: CELL_MAX, columns: 1 };
  /** The index of the cell under the pointer, or the one chosen by keys. */
  let at = -1;

  const canvas = h('canvas', {});
  const told = h('p', { class: 'dim told', role: 'status' });
  const button = h('button', { type: 'button', id: 'heat', class: 'heat' }, canvas);
  const element = h('div', { class: 'strip' }, button, told);
  const scheme = window.matchMedia('(prefers-color-scheme: dark)');
  scheme.addEventListener('change', redraw);
  button.addEventListener('pointermove', (event) => point(cellAt(event)));
  button.addEventListener('pointerleave', () => point(-1));
  button.addEventListener('blur', () => point(-1));
  button.addEventListener('keydown', (event) => {
    const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: grid.columns, ArrowUp: -grid.columns, Home: -Infinity, End: Infinity };
    const step = steps[event.key];
    if (step === undefined) return;
    event.preventDefault();
    point(at < 0 ? 0 : Math.min(entries.length - 1, Math.max(0, at + step)));
  });
  button.addEventListener('click', (event) => {
    // A click by key has no position.
    const entry = entries[event.detail === 0 ? at : cellAt(event)];
    if (entry) open(entry);
  });

  function cellAt(event) {
    const box = canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left) / grid.cell);
    const cell = column + grid.columns * Math.floor((event.clientY - box.top) / grid.cell);
    return column >= 0 && column < grid.columns && cell >= 0 && cell < entries.length ? cell : -1;
  }

  function point(cell) {
    at = cell;
    tell();
    redraw();
  }

  function tell() {
    const entry = entries[at];
    setText(told, entry ? `${entry.name}: ${[SEVERITIES[entry.severity].word, entry.cause].filter(Boolean).join(', ')}` : '');
  }

  function redraw() {
    drawn = '';
    draw();
  }

  function draw() {
    const width = element.clientWidth - FRAME;
    const signature = `${width} ${window.devicePixelRatio}`;
    if (entries.length === 0 || width <= 0 || drawn === signature) return;
    drawn = signature;
    grid = fit(entries.length, width);
    const { cell, columns } = grid;
    const [wide, high] = [columns * cell, Math.ceil(entries.length / columns) * cell];
    canvas.width = wide * window.devicePixelRatio;
    canvas.height = high * window.devicePixelRatio;
    canvas.style.width = `${wide}px`;
    canvas.style.height = `${high}px`;
    const context = canvas.getContext('2d');
    context.scale(window.devicePixelRatio, window.devicePixelRatio);
    const style = getComputedStyle(element);
    // Cells that need attention are drawn last, over their neighbors.
    for (const [severity, variable] of Object.entries(COLORS).reverse()) {
      context.fillStyle = style.getPropertyValue(variable);
      for (const [index, entry] of entries.entries()) if (entry.severity === severity) shape(context, severity, (index % columns) * cell, Math.floor(index / columns) * cell, cell);
    }
    if (at < 0) return;
    context.strokeStyle = style.getPropertyValue('--ink');
    context.lineWidth = 2;
    context.strokeRect((at % columns) * cell, Math.floor(at / columns) * cell, cell, cell);
  }

  return {
    element,
    draw,
    show(all, counts) {
      const pointed = entries[at]?.key;
      entries = all.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
      at = pointed ? entries.findIndex((entry) => entry.key === pointed) : -1;
      element.hidden = entries.length < CELLS_MIN;
      const parts = [...counts].filter(([, number]) => number > 0).map(([severity, number]) => `${number.toLocaleString('en')} ${SEVERITIES[severity].word.toLowerCase()}`);
      setAttribute(button, 'aria-label', `Map of ${count(entries.length, 'ReplicaSet')}: ${parts.join(', ')}. Arrow keys select a ReplicaSet, Enter opens it.`);
      tell();
      drawn = '';
    },
    close() {
      scheme.removeEventListener('change', redraw);
    },
  };
}

/** Returns the largest cell size with which `number` cells fit, or the smallest size. */
function fit(number, width) {
  for (let cell = CELL_MAX; ; cell -= 1) {
    const columns = Math.max(1, Math.floor(width / cell));
    if (cell === CELL_MIN || Math.ceil(number / columns) * cell <= HEIGHT_MAX) return { cell, columns: Math.min(columns, number) };
  }
}

/** Draws a cell. The more urgent its ReplicaSet is, the more of the cell is filled. */
function shape(context, severity, x, y, cell) {
  const side = cell - (cell > 6 ? 2 : 1);
  const dot = Math.max(1, Math.round(side * (severity === 'WORKING' ? 0.6 : 0.35)));
  const beyond = cell > 6 ? 0 : 1;
  if (severity === 'BLOCKED') context.fillRect(x - beyond, y - beyond, side + 2 * beyond, side + 2 * beyond);
  else if (severity === 'SLOW') {
    context.beginPath();
    context.moveTo(x, y + side);
    context.lineTo(x + side / 2, y);
    context.lineTo(x + side, y + side);
    context.fill();
  } else context.fillRect(x + Math.floor((side - dot) / 2), y + Math.floor((side - dot) / 2), dot, dot);
}
