// The most important fact of the board, as a sentence.

import { SEVERITIES } from './cause.js';
import { count } from './format.js';
import { group, sorted } from './sort.js';

/** What blocks, in the words of the sentence, by the text of the server. */
const QUOTA = /^Quota exceeded in \S+: (?:at most |\d+ of )(\d+) pods$/;

/** Returns the sentence, and the ReplicaSet whose next command helps; none if nothing needs a person. */
export function headlineOf(entries, counts) {
  const worst = ['BLOCKED', 'SLOW'].find((severity) => counts.get(severity) > 0);
  if (!worst) return { text: calm(entries.length, counts) };
  const troubled = sorted(entries.filter((entry) => entry.severity === worst), 'severity', false);
  const size = (item) => item.members?.length ?? 1;
  const largest = group(troubled, new Set()).reduce((best, item) => (size(item) > size(best) ? item : best));
  const members = largest.members ?? [largest];
  const [entry] = members;
  const others = troubled.length - members.length;
  const cause = members.length > 1 ? entry.group : entry.cause;
  const pods = QUOTA.exec(cause)?.[1];
  const why = pods ? ` by a quota of ${count(Number(pods), 'pod')}` : cause && `: ${cause}`;
  const word = SEVERITIES[worst].word.toLowerCase();
  return { text: `${who(members)} ${members.length === 1 ? 'is' : 'are'} ${word}${why}${others > 0 ? `. ${others.toLocaleString('en')} more ${others === 1 ? 'is' : 'are'} ${word}` : ''}`, entry };
}

function who(members) {
  const { namespace, name } = members[0].row.replicaSet;
  if (members.length === 1) return `${namespace}/${name}`;
  const namespaces = new Set(members.map(({ row }) => row.replicaSet.namespace)).size;
  return `${count(members.length, 'ReplicaSet')} in ${namespaces === 1 ? namespace : count(namespaces, 'namespace')}`;
}

function calm(total, counts) {
  const working = counts.get('WORKING');
  if (total === 0) return '';
  if (working > 0) return `${working.toLocaleString('en')} of ${count(total, 'ReplicaSet')} ${working === 1 ? 'is' : 'are'} converging`;
  return total === 1 ? 'The only ReplicaSet is in sync' : `All ${count(total, 'ReplicaSet')} are in sync`;
}
