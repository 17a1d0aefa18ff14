// The frame around the views: which is shown, what becomes of its stream, and the login.

import { showBoard } from './board.js';
import { showDifferences } from './differences.js';
import { h, setText } from './dom.js';
import { clock, learnTime, now } from './format.js';
import { handOver, showRecording } from './recording.js';
import { place } from './route.js';
import { showReplicaSet } from './replica-set.js';
import { showSessions } from './sessions.js';
import { follow, hasToken, setToken } from './stream.js';

const main = document.getElementById('main');
const status = document.getElementById('status');
const statusText = document.getElementById('status-text');
const notice = document.getElementById('notice');

let view = null;
let stream = null;
let shownPath = null;
let seen = 0;

function show() {
  const { parts, query } = place();
  const path = parts.join('\n');
  if (view && path === shownPath) return;
  const moved = shownPath !== null;
  shownPath = path;
  stream?.close();
  view?.close();
  document.title = 'Decree';
  seen = 0;
  view = open(parts, query);
  const current = ['sessions', 'differences', 'recording'].includes(parts[0]) ? parts[0] : 'board';
  for (const link of document.querySelectorAll('nav a')) {
    if (link.dataset.view === current) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  if (moved) main.focus({ preventScroll: true });
  window.scrollTo(0, 0);
  connect();
}

function open(parts, query) {
  if (parts[0] === 'replicasets' && parts.length === 4) return showReplicaSet(main, query, parts.slice(1));
  if (parts[0] === 'sessions') return showSessions(main);
  if (parts[0] === 'differences') return showDifferences(main);
  if (parts[0] === 'recording') return showRecording(main);
  return showBoard(main, query);
}

function connect() {
  stream?.close();
  const shown = view;
  if (!shown.stream) {
    stream = null;
    tell('file', '');
    return;
  }
  stream = follow(shown.stream, {
    event(name, data) {
      seen = now();
      if (name === 'ping') learnTime(data.seconds);
      shown.event(name, data);
    },
    state(state, message) {
      if (state === 'live') shown.begin();
      tell(state, message);
    },
  });
}

function tell(state, message) {
  const words = { connecting: 'Connecting…', live: 'Live', lost: 'Reconnecting…', login: 'Token needed', denied: 'Not allowed', displaced: 'Paused', file: 'Not live' };
  // What is announced is that the connection is lost or there again, not each try.
  if (state === 'connecting' && status.dataset.state === 'lost') return;
  status.dataset.state = state;
  setText(statusText, words[state]);
  main.classList.toggle('stale', !['live', 'connecting', 'file'].includes(state));
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
  const known = seen > 0 ? ` What is shown was known at ${clock(seen)}.` : '';
  return [h('p', {}, h('strong', {}, 'Not connected: '), `${message}.${known} The page reconnects by itself.`)];
}

function tellDenied(message) {
  return [h('p', {}, h('strong', {}, 'You may not look at this: '), `${message}.`), h('p', {}, button('Use another token', () => tell('login', 'Paste a token that a policy grants the role viewer.')))];
}

function tellDisplaced(message) {
  return [h('p', {}, h('strong', {}, 'Paused: '), `${message}. `, button('Go on here', connect))];
}

function tellLogin(message) {
  const field = h('textarea', { id: 'token', rows: 3, spellcheck: 'false', autocomplete: 'off', required: true });
  const form = h('form', { class: 'login' }, h('h2', {}, 'Who are you?'), h('p', { class: 'said' }, message),
    h('label', { for: 'token' }, 'Token'), field, h('p', { class: 'dim' }, 'It is kept in the memory of this page, and gone when you close or reload it.'), h('button', { type: 'submit' }, 'Go on'));
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    setToken(field.value.trim());
    field.value = '';
    connect();
  });
  if (hasToken()) setText(form.querySelector('.said'), `The token does not count: ${message}`);
  return [form];
}

function button(text, onclick) {
  return h('button', { type: 'button', onclick }, text);
}

/** Takes a file that is dropped, whichever view is shown; what else is dragged stays the browser's. */
function take(event) {
  if (!event.dataTransfer?.types.includes('Files')) return;
  event.preventDefault();
  if (event.type !== 'drop') return;
  const [file] = event.dataTransfer.files;
  if (!file) return;
  if (view.open) {
    view.open(file);
    return;
  }
  handOver(file);
  window.location.hash = '#/recording';
}

window.addEventListener('dragover', take);
window.addEventListener('drop', take);
document.getElementById('skip').addEventListener('click', (event) => {
  event.preventDefault();
  main.focus();
});
window.addEventListener('hashchange', show);
window.addEventListener('keydown', (event) => {
  const typing = event.target.matches?.('input, textarea');
  if (event.key === '/' && !typing && view?.focusSearch) {
    event.preventDefault();
    view.focusSearch();
  }
});
show();
