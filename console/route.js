// Places in the page, as the address part after `#`, so that people can share them.

/** Returns the hash for the parts of a path and a query. */
export function hashOf(parts, query = {}) {
  const kept = Object.entries(query).filter(([, value]) => value !== '' && value !== null && value !== undefined);
  const tail = kept.length > 0 ? `?${new URLSearchParams(kept)}` : '';
  return `#/${parts.map(encodeURIComponent).join('/')}${tail}`;
}

/** Parses the hash of the current address. */
export function place() {
  const [path, tail = ''] = window.location.hash.replace(/^#\/?/, '').split('?');
  const decode = (part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  };
  return { parts: path.split('/').filter(Boolean).map(decode), query: Object.fromEntries(new URLSearchParams(tail)) };
}

let board = '#/';

/** Returns the address of the board as last shown, with search and filters. */
export function lastBoard() {
  return board;
}

/** Replaces the query in the address, without a new entry in the history. */
export function replaceQuery(query) {
  const { parts, query: old } = place();
  const address = hashOf(parts, { ...old, ...query });
  if (parts.length === 0) board = address;
  window.history.replaceState(null, '', address);
}
