// Server-sent events over fetch, because EventSource cannot send a token, and what the page does when the stream ends.

/** The page reconnects after this silence. The server sends something every 5 seconds. */
const SILENCE = 15_000;
const RETRY_FIRST = 500;
const RETRY_MAX = 8_000;

let token = null;

/** Keeps a token in memory only, for the requests of this page. */
export function setToken(text) {
  token = text || null;
}

export function hasToken() {
  return token !== null;
}

function headers() {
  return token === null ? {} : { authorization: `Bearer ${token}` };
}

/** Sends one request. A refusal is an Error with `status` and `reason`. */
export async function ask(path, query, signal) {
  const answer = await fetch(`api/${path}?${new URLSearchParams(query)}`, { headers: headers(), signal }).catch((error) => {
    throw error.name === 'AbortError' ? error : new Error('the server does not answer');
  });
  if (!answer.ok) throw await refusal(answer);
  return answer.json();
}

async function refusal(answer) {
  let said = {};
  const text = await answer.text();
  try {
    said = JSON.parse(text);
  } catch {
    said = { message: text.trim() };
  }
  const error = new Error(said.message || `HTTP ${answer.status}`);
  error.status = answer.status;
  error.reason = said.reason || '';
  return error;
}

/**
 * Follows a view until it is closed. `on.event(name, data)` gets the events, and `on.state(state, message)` the state of the stream:
 * `connecting`, `live`, `lost` (the page reconnects), `login` (the server requires a token), `denied`, `displaced`.
 */
export function follow(query, on) {
  let closed = false;
  let retry = RETRY_FIRST;
  let timer = 0;
  let abort = new AbortController();

  async function run() {
    const own = new AbortController();
    abort = own;
    const silence = setTimeout(() => own.abort(), SILENCE);
    try {
      const answer = await fetch(`api/stream?${new URLSearchParams(query)}`, { headers: headers(), signal: own.signal }).finally(() => clearTimeout(silence));
      if (!answer.ok) throw await refusal(answer);
      if (closed) return;
      retry = RETRY_FIRST;
      on.state('live', '');
      const end = await read(answer.body, own, (name, data) => !closed && on.event(name, data));
      if (!closed) ended(end);
    } catch (error) {
      if (!closed) failed(error);
    }
  }

  function ended(end) {
    if (end && end.reason === 'DISPLACED') on.state('displaced', end.message);
    else again(end ? end.message : 'the server closed the connection');
  }

  function failed(error) {
    if (error.status === 401) on.state('login', error.message);
    else if (error.status === 403) on.state('denied', error.message);
    else again(error.status ? error.message : 'the server does not answer');
  }

  function again(why) {
    on.state('lost', why);
    timer = setTimeout(run, retry * (0.75 + Math.random() / 2));
    retry = Math.min(retry * 2, RETRY_MAX);
  }

  on.state('connecting', '');
  run();
  return {
    close() {
      closed = true;
      clearTimeout(timer);
      abort.abort();
    },
  };
}

/** Reads events to the end of the stream, and returns the data of the event `end`, if there was one. */
async function read(body, abort, take) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  let end = null;
  let silence = setTimeout(() => abort.abort(), SILENCE);
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return end;
      clearTimeout(silence);
      silence = setTimeout(() => abort.abort(), SILENCE);
      const parts = (rest + value).split('\n\n');
      rest = parts.pop();
      for (const part of parts) {
        const [name, data] = parse(part);
        if (name === 'end') end = data;
        else show(take, name, data);
      }
    }
  } finally {
    clearTimeout(silence);
  }
}

/** Reports an exception of a view, so that it does not look like a lost connection. */
function show(take, name, data) {
  try {
    take(name, data);
  } catch (error) {
    window.reportError(error);
  }
}

function parse(text) {
  let name = 'message';
  let data = '';
  for (const line of text.split('\n')) {
    if (line.startsWith('event: ')) name = line.slice(7);
    else if (line.startsWith('data: ')) data += line.slice(6);
  }
  return [name, data ? JSON.parse(data) : null];
}
