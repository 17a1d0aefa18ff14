// A button that copies a text.

import { h, setText } from './dom.js';

/** Returns the button and its status text. The button copies `text()`; where the browser forbids that, it selects the text of `select`. */
export function makeCopy(label, text, select) {
  const button = h('button', { type: 'button', onclick: copy }, label);
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
