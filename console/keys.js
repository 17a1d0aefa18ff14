// The keys of the console, in a dialog.

import { h } from './dom.js';

const KEYS = [
  ['/', 'Search the board'],
  ['↑ ↓ Page Up Page Down Home End', 'Move through the rows of the board'],
  ['Enter', 'Open a row, a pod or a cell of the map'],
  ['→ ←', 'Open and close a row of several ReplicaSets'],
  ['← ↑ ↓ →', 'Move through the pods and the map, or move a slider'],
  ['Esc', 'Close the card of a pod, or this list'],
  ['?', 'Show this list'],
];

/** Creates the dialog. The browser keeps the focus in it, closes it with Escape, and then returns the focus. */
export function makeKeys() {
  const close = h('button', { type: 'button', onclick: () => dialog.close() }, 'Close');
  const dialog = h('dialog', { 'aria-labelledby': 'keys-title' }, h('h2', { id: 'keys-title' }, 'Keys'), h('dl', {}, KEYS.map(([keys, text]) => [h('dt', {}, keys), h('dd', {}, text)])), close);
  return dialog;
}
