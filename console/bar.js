// The bar of a ReplicaSet: desired, current and ready pods, and operations in flight. Patterns and numbers repeat what the colors say.

import { h, setAttribute } from './dom.js';

export function makeBar() {
  const part = (name) => h('span', { class: `part ${name}` });
  return h('span', { class: 'bar', 'aria-hidden': 'true' }, part('ready'), part('there'), part('flight'), part('surplus'));
}

export function drawBar(bar, row) {
  const scale = Math.max(row.replicas, row.active, 1);
  const there = Math.min(row.active, row.replicas);
  const ready = Math.min(row.ready, there);
  const missing = Math.max(0, row.replicas - row.active);
  const flight = Math.min(row.operationsInFlight, missing);
  const widths = [ready, there - ready, flight, row.active - there].map((part) => `${(100 * part) / scale}%`);
  const signature = widths.join(' ');
  if (bar.dataset.drawn === signature) return;
  bar.dataset.drawn = signature;
  for (const [at, width] of widths.entries()) bar.children[at].style.width = width;
  setAttribute(bar, 'data-empty', row.replicas === 0 && row.active === 0);
}

/** Returns the numbers of a bar in words. */
export function barText(row) {
  const [ready, replicas, active, terminating, inFlight] = ['ready', 'replicas', 'active', 'terminating', 'operationsInFlight'].map((field) => row[field].toLocaleString('en'));
  const parts = [`${ready}/${replicas} ready`];
  if (row.active !== row.replicas && row.active !== row.ready) parts.push(`${active} current`);
  if (row.terminating > 0) parts.push(`${terminating} terminating`);
  if (row.operationsInFlight > 0) parts.push(`${inFlight} in flight`);
  return parts.join(', ');
}
