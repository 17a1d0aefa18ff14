// Made-up answers, for states that no small cluster has, such as thousands of ReplicaSets.

/**
 * Runs in a page before its scripts: `made.say(name, data)` sends an event of the stream, as soon as the page has opened it, and
 * `made.answers` has the answers to other requests.
 */
export function makeUp() {
  const encoder = new TextEncoder();
  let stream = null;
  const waiting = [];
  const made = {
    /** The number of streams that the page has opened. */
    opened: 0,
    answers: {},
    asked: [],
    say(name, data) {
      const event = encoder.encode(`event: ${name}\ndata: ${JSON.stringify(data)}\n\n`);
      if (stream) stream.enqueue(event);
      else waiting.push(event);
    },
    lose() {
      stream.close();
      stream = null;
    },
  };
  const seconds = () => Math.floor(Date.now() / 1000);
  setInterval(() => stream && made.say('ping', { seconds: seconds() }), 1000);
  window.made = made;
  window.fetch = async (address, { signal } = {}) => {
    const url = new URL(address, window.location.href);
    const route = url.pathname.replace(/^.*\/api\//, '');
    if (route === 'stream') {
      const body = new ReadableStream({
        start(controller) {
          stream = controller;
          made.opened += 1;
          for (const event of waiting.splice(0)) stream.enqueue(event);
        },
      });
      signal.addEventListener('abort', () => (stream = null));
      return new Response(body);
    }
    const query = Object.fromEntries(url.searchParams);
    made.asked.push({ route, query });
    return new Response(JSON.stringify(made.answers[route](query)));
  };
}

/** Returns a row of the board. */
export function summary(name, fields = {}) {
  const { namespace = 'shop', cluster = 'north', severity = 'IN_SYNC', text = 'All pods available', group = '', nextCommand = '', replicas = 3, ready = replicas, since = 0, ...others } = fields;
  return {
    cluster, clusterUid: `${cluster}-uid`, replicaSet: { namespace, name, uid: `${cluster}-${namespace}-${name}` }, replicas, active: ready, ready, available: ready, terminating: 0, operationsInFlight: 0,
    state: severity === 'IN_SYNC' ? 'REPLICA_SET_STATE_IN_SYNC' : 'REPLICA_SET_STATE_WAITING', reasons: [], failure: '', nextSyncTime: null,
    divergeTime: since > 0 ? new Date(Date.now() - 1000 * since).toISOString() : null, cause: { severity: `SEVERITY_${severity}`, text, group, nextCommand }, ...others,
  };
}
