// The order of the board, and the grouping of its rows.

import { SEVERITIES } from './cause.js';

const ORDER = new Map(Object.keys(SEVERITIES).map((severity, at) => [severity, at]));
const byName = (a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0);
const bySince = (a, b) => a.since - b.since;
const missing = ({ row }) => row.replicas - row.ready;

/** The orders by name, each with its label and its comparison. */
export const SORTS = {
  severity: ['Severity', (a, b) => ORDER.get(a.severity) - ORDER.get(b.severity) || bySince(a, b)],
  name: ['Name', byName],
  pods: ['Most pods missing', (a, b) => missing(b) - missing(a)],
  cause: ['Cause', (a, b) => (a.cause < b.cause ? -1 : a.cause > b.cause ? 1 : 0)],
  unconverged: ['Longest unconverged', bySince],
};

/** Returns the rows in an order. The name breaks ties. */
export function sorted(entries, sort, descending) {
  const [, compare] = SORTS[sort];
  const sign = descending ? -1 : 1;
  return entries.sort((a, b) => sign * compare(a, b) || byName(a, b));
}

/** Groups rows with the same severity and cause into one item. The members follow an open group. */
export function group(entries, open) {
  const groups = new Map();
  for (const entry of entries) {
    if (!entry.group) continue;
    const key = groupKey(entry);
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(entry);
  }
  const items = [];
  for (const entry of entries) {
    const key = groupKey(entry);
    const members = entry.group ? groups.get(key) : [entry];
    if (members.length === 1) items.push(entry);
    else if (members[0] === entry) {
      items.push({ key, members });
      if (!open.has(key)) continue;
      for (const member of members) member.isMember = true;
      items.push(...members);
    }
  }
  return items;
}

function groupKey({ row, severity, group: cause }) {
  return `group ${severity} ${row.clusterUid || row.cluster} ${row.mode} ${cause}`;
}
