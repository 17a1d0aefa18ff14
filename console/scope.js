// The scope of the board: search, filters and order. The address stores all of it; the browser also stores cluster, namespace and order.

import { SEVERITIES } from './cause.js';
import { h, setAttribute, setText } from './dom.js';
import { replaceQuery } from './route.js';
import { SORTS } from './sort.js';

const STORED = 'decree.board';
const FILTERS = [['all', 'All'], ['unconverged', 'Unconverged'], ...Object.entries(SEVERITIES).map(([severity, { word }]) => [severity.toLowerCase().replace('_', '-'), word, severity])];
const UNCONVERGED = ['BLOCKED', 'SLOW', 'WORKING'];

/** Returns the stored values; none if the browser has no storage. */
function stored() {
  try {
    const kept = JSON.parse(localStorage.getItem(STORED));
    const texts = Object.entries(kept ?? {}).filter(([name, value]) => ['cluster', 'namespace', 'sort'].includes(name) && typeof value === 'string');
    return Object.fromEntries(texts);
  } catch {
    return {};
  }
}

function store(kept) {
  try {
    localStorage.setItem(STORED, JSON.stringify(kept));
  } catch {
    // Without storage, only the address keeps the scope.
  }
}

/** Creates the tools above the board. Values of the address override stored ones. */
export function makeScope(query, change) {
  const given = Object.keys(query).length > 0 ? query : stored();
  const [order] = Object.keys(SORTS).filter((sort) => sort === (given.sort ?? '').replace(/^-/, ''));
  const chosen = {
    q: given.q ?? '', show: FILTERS.some(([id]) => id === given.show) ? given.show : 'all', cluster: given.cluster ?? '', namespace: given.namespace ?? '',
    sort: order ?? 'severity', descending: order !== undefined && given.sort.startsWith('-'),
  };

  const search = h('input', { id: 'search', type: 'search', placeholder: 'namespace/name', autocomplete: 'off', spellcheck: 'false', oninput: () => choose({ q: search.value }) });
  const counts = FILTERS.map(() => h('span', { class: 'count' }));
  const radios = FILTERS.map(([id]) => h('input', { type: 'radio', name: 'show', value: id, onchange: () => choose({ show: id }) }));
  const filters = h('fieldset', { class: 'filters' }, h('legend', { class: 'away' }, 'Show'), FILTERS.map(([, label], at) => h('label', {}, radios[at], h('span', {}, label, ' ', counts[at]))));
  const cluster = h('select', { id: 'cluster', onchange: () => choose({ cluster: cluster.value }) });
  const namespace = h('select', { id: 'namespace', onchange: () => choose({ namespace: namespace.value }) });
  const sort = h('select', { id: 'sort', onchange: () => choose({ sort: sort.value, descending: false }) }, Object.entries(SORTS).map(([id, [text]]) => h('option', { value: id }, text)));
  const labelled = (select, text) => h('label', { class: `choice ${select.id}` }, h('span', { class: 'dim' }, text), ' ', select);
  const element = h('div', { class: 'tools' }, h('label', { class: 'search', for: 'search' }, h('span', { class: 'away' }, 'Search'), search), labelled(cluster, 'Cluster'), labelled(namespace, 'Namespace'), labelled(sort, 'Sort by'), filters);
  let words = [];
  draw();
  write();

  function draw() {
    if (search.value !== chosen.q) search.value = chosen.q;
    for (const [at, [id]] of FILTERS.entries()) radios[at].checked = id === chosen.show;
    sort.value = chosen.sort;
    words = chosen.q.toLowerCase().split(/\s+/).filter(Boolean);
  }

  function write() {
    const order = `${chosen.descending ? '-' : ''}${chosen.sort}`;
    replaceQuery({ q: chosen.q, show: chosen.show === 'all' ? '' : chosen.show, cluster: chosen.cluster, namespace: chosen.namespace, sort: order === 'severity' ? '' : order });
  }

  function choose(choice) {
    Object.assign(chosen, choice);
    draw();
    write();
    store({ cluster: chosen.cluster, namespace: chosen.namespace, sort: `${chosen.descending ? '-' : ''}${chosen.sort}` });
    change();
  }

  /** Fills a select with all options, and with the chosen one even if it does not exist. */
  function fill(select, all, names, value) {
    const options = [...new Set([...names, ...(value ? [value] : [])])].sort();
    const signature = options.join('\n');
    if (select.dataset.options !== signature || select.children.length === 0) {
      select.dataset.options = signature;
      select.replaceChildren(h('option', { value: '' }, all), ...options.map((name) => h('option', { value: name }, name)));
    }
    if (select.value !== value) select.value = value;
    setAttribute(select.parentElement, 'data-few', options.length < 2 && !value);
  }

  return {
    element,
    get cluster() {
      return chosen.cluster;
    },
    get sort() {
      return chosen.sort;
    },
    get descending() {
      return chosen.descending;
    },
    /** Sorts by a column, or reverses the order if the board is already sorted by it. */
    sortBy(id) {
      choose({ sort: id, descending: chosen.sort === id && !chosen.descending });
    },
    reset() {
      choose({ q: '', show: 'all', cluster: '', namespace: '' });
    },
    matches({ row, search: text }) {
      return (!chosen.cluster || row.cluster === chosen.cluster) && (!chosen.namespace || row.replicaSet.namespace === chosen.namespace) && words.every((part) => text.includes(part));
    },
    shows(severity) {
      if (chosen.show === 'all') return true;
      if (chosen.show === 'unconverged') return UNCONVERGED.includes(severity);
      return FILTERS.find(([id]) => id === chosen.show)[2] === severity;
    },
    /** Takes the rows to choose from, and the number of ReplicaSets of each severity. */
    count(entries, total, severities) {
      const clusters = new Set();
      const namespaces = new Set();
      for (const { row } of entries) {
        clusters.add(row.cluster);
        if (!chosen.cluster || row.cluster === chosen.cluster) namespaces.add(row.replicaSet.namespace);
      }
      fill(cluster, 'All clusters', clusters, chosen.cluster);
      fill(namespace, 'All namespaces', namespaces, chosen.namespace);
      const unconverged = UNCONVERGED.reduce((sum, severity) => sum + severities.get(severity), 0);
      for (const [at, [id, , severity]] of FILTERS.entries()) {
        const number = severity ? severities.get(severity) : id === 'all' ? total : unconverged;
        setText(counts[at], number.toLocaleString('en'));
        setAttribute(radios[at].parentElement, 'data-none', number === 0 && id !== chosen.show && id !== 'all');
      }
    },
    focus() {
      search.focus();
    },
  };
}
