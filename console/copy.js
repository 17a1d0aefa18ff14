// Buttons that copy a text, and commands with such a button.

import { h, setText } from './dom.js';

/** Returns the button and its status text. The button copies `text()`; where the browser forbids that, it selects the text of `select`. */
export function makeCopy(label, text, select) {
  const button = h('button', { type: 'button', class: 'copy', onclick: copy }, label);
  const said = h('span', { class: 'away', role: 'status' });

  async function copy() {
    try {
      await navigator.clipboard.writeText(text());
      tell('Copied');
    } catch {
      if (select) window.getSelection().selectAllChildren(select);
      tell(select ? 'Selected' : 'Not allowed');
    }
  }

  function tell(word) {
    setText(button, word);
    setText(said, word);
  }

  return {
    elements: [button, said],
    reset() {
      setText(button, label);
      setText(said, '');
    },
  };
}

/** Creates a line with a command and a button that copies it. The line is hidden without a command. */
export function makeCommand(first = '') {
  const code = h('code', {});
  const copy = makeCopy('Copy', () => code.textContent, code);
  const element = h('span', { class: 'command' }, code, copy.elements);

  function show(command) {
    element.hidden = !command;
    if (code.textContent === command) return;
    setText(code, command);
    copy.reset();
  }

  show(first);
  return Object.assign(element, { show });
}
