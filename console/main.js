// The frame around the views: the current view, the state of its stream, and the login.

import { showBoard } from './board.js';
import { h, setText } from './dom.js';
import { clock, learnTime, now } from './format.js';
import { makeKeys } from './keys.js';
import { lastBoard, place } from './route.js';
import { showReplicaSet } from './replica-set.js';
import { showSessions } from './sessions.js';
import { follow, hasToken, setToken } from './stream.js';

const main = document.getElementById('main');
const status = document.getElementById('status');
const statusText = document.getElementById('status-text');
const notice = document.getElementById('notice');
const keys = makeKeys();

const TITLES = { '': 'Board', replicasets: 'ReplicaSet', 'what-if': 'What if?', sessions: 'Sessions', differences: 'Differences' };

/** The views whose scripts load after the data of the first view. They then open without a server, too. */
const LATER = { 'what-if': () => import('./what-if.js'), differences: () => import('./differences.js') };

let later = null;
let view = null;
let stream = null;
let seen = 0;
/** When each kind of view last had data. */
const lastSeen = new Map();

function show() {
  const { parts, query } = place();
  const moved = view !== null;
  stream?.close();
  view?.close();
  document.title = `${TITLES[parts[0] ?? ''] ?? 'Page not found'} · Decree`;
  enter(open(parts, query));
  const current = parts[0] === undefined || parts[0] === 'replicasets' ? 'board' : parts[0];
  for (const link of document.querySelectorAll('header nav a')) {
    if (link.dataset.view === current) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  if (moved) main.focus({ preventScroll: true });
  window.scrollTo(0, 0);
}

/** Shows an opened view, with its data from the last time until new data arrive. */
function enter(opened) {
  view = opened;
  main.classList.remove('unknown');
  seen = view.isKept ? (lastSeen.get(place().parts[0]) ?? 0) : 0;
  connect();
}

function open(parts, query) {
  if (parts.length === 0) return showBoard(main, query);
  if (parts[0] === 'replicasets' && parts.length === 4) return showReplicaSet(main, query, parts.slice(1));
  if (parts[0] === 'what-if' && parts.length <= 2 && ['scale', 'drain', 'quota'].includes(parts[1] ?? 'scale')) return openLater('what-if', ({ showWhatIf }) => showWhatIf(main, query, parts[1]));
  if (parts.length === 1 && parts[0] === 'sessions') return showSessions(main);
  if (parts.length === 1 && parts[0] === 'differences') return openLater('differences', ({ showDifferences }) => showDifferences(main, query));
  return showNothing();
}

/** Opens a view whose scripts are loaded only when needed. */
function openLater(name, begin) {
  const [title] = document.title.split(' · ');
  const say = (text) => main.replaceChildren(h('div', { class: 'empty' }, h('h1', {}, title), h('p', {}, text)));
  const waiting = { stream: null, begin() {}, event() {}, close() {} };
  say('Loading…');
  LATER[name]().then(
    (module) => view === waiting && enter(begin(module)),
    () => view === waiting && say('The server does not answer. Reload the page when it does.'),
  );
  return waiting;
}

function showNothing() {
  document.title = 'Page not found · Decree';
  main.replaceChildren(h('div', { class: 'empty', id: 'empty' }, h('h1', {}, 'Page not found'), h('p', {}, 'The console has no page at ', h('code', {}, window.location.hash), '.'), h('p', {}, h('a', { href: lastBoard() }, 'Open the board'))));
  return { stream: null, begin() {}, event() {}, close() {} };
}

function connect() {
  stream?.close();
  const shown = view;
  if (!shown.stream) {
    stream = null;
    tell('none', '');
    return;
  }
  stream = follow(shown.stream, {
    event(name, data) {
      seen = now();
      lastSeen.set(place().parts[0], seen);
      if (name === 'ping') learnTime(data.seconds);
      shown.event(name, data);
      later ??= Promise.allSettled(Object.values(LATER).map((load) => load()));
    },
    state(state, message) {
      if (state === 'live') shown.begin();
      tell(state, message);
    },
  });
}

function tell(state, message) {
  const words = { connecting: 'Connecting…', live: 'Live', lost: 'Reconnecting…', login: 'Sign in', denied: 'Not allowed', displaced: 'Paused', none: 'Not live' };
  // Announces that the connection is lost or restored, but not each attempt.
  if (state === 'connecting' && status.dataset.state === 'lost') return;
  status.dataset.state = state;
  setText(statusText, words[state]);
  // A page without access or data does not show which things it would contain.
  main.classList.toggle('unknown', seen === 0 && ['login', 'denied', 'lost'].includes(state));
  main.classList.toggle('stale', !['live', 'connecting', 'none'].includes(state));
  const tellers = { lost: tellLost, login: tellLogin, denied: tellDenied, displaced: tellDisplaced };
  const content = tellers[state]?.(message);
  if (state === 'login' && notice.querySelector('form')) {
    setText(notice.querySelector('.said'), message);
    return;
  }
  notice.replaceChildren(...(content ?? []));
  notice.hidden = !content;
  if (state === 'login') notice.querySelector('textarea').focus();
}

function tellLost(message) {
  const known = seen > 0 ? ` The page shows the state of ${clock(seen)}.` : '';
  const said = `${message}.${known} The page reconnects automatically.`;
  return seen > 0 ? [h('p', {}, h('strong', {}, 'Not connected: '), said)] : [heading('Not connected'), h('p', {}, `Reason: ${said}`)];
}

function tellDenied(message) {
  const again = () => tell('login', 'Paste a token whose subject has the role viewer in the policy.');
  return [heading('Access denied'), h('p', {}, `${message}.`), ...(hasToken() ? [h('p', {}, button('Use another token', again))] : [])];
}

function tellDisplaced(message) {
  return [h('p', {}, h('strong', {}, 'Paused: '), `${message}. `, button('Continue here', connect))];
}

function tellLogin(message) {
  const field = h('textarea', { id: 'token', rows: 3, spellcheck: 'false', autocomplete: 'off', required: true });
  const form = h('form', { class: 'login' }, heading('Sign in'), h('p', { class: 'said' }, `${message.charAt(0).toUpperCase()}${message.slice(1)}`),
    h('label', { for: 'token' }, 'Token'), field, h('p', { class: 'dim' }, 'The policy of the server names the subjects that can sign in; ask an administrator for a token. The token stays in the memory of this page until you close or reload it.'), h('button', { type: 'submit' }, 'Sign in'));
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    // A terminal breaks a long token into lines. A header takes no other characters, and the page would blame the server.
    const token = field.value.replace(/\s+/g, '');
    field.value = '';
    if (!/^[!-~]+$/.test(token)) {
      setText(form.querySelector('.said'), 'The token is not valid: it must be printable ASCII');
      return;
    }
    setToken(token);
    connect();
  });
  if (hasToken()) setText(form.querySelector('.said'), `The token is not valid: ${message}`);
  return [form];
}

/** Returns a heading for the page, for when it has no other content. */
function heading(text) {
  return h(seen === 0 ? 'h1' : 'h2', {}, text);
}

function button(text, onclick) {
  return h('button', { type: 'button', onclick }, text);
}

document.getElementById('skip').addEventListener('click', (event) => {
  event.preventDefault();
  main.focus();
});
window.addEventListener('hashchange', show);
window.addEventListener('keydown', (event) => {
  const typing = event.target.matches?.('input:not([type="range"], [type="radio"], [type="checkbox"]), textarea, select');
  if (typing || keys.open) return;
  if (event.key === '?') keys.showModal();
  else if (event.key === '/' && view?.focusSearch) {
    event.preventDefault();
    view.focusSearch();
  }
});
document.body.append(keys);
document.getElementById('keys').addEventListener('click', () => keys.showModal());
show();
