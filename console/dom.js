// Creates elements without markup in strings, so that text from a cluster is only ever text.

/** Creates an element. Attributes that are null or false are omitted; children are texts, elements, and lists of both. */
export function h(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith('on')) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? '' : String(value));
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return element;
}

/** Sets a text only where it differs, so that selections and announcements are not disturbed. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Sets an attribute only where it differs. */
export function setAttribute(element, name, value) {
  if (element.getAttribute(name) !== String(value)) element.setAttribute(name, String(value));
}

/** Puts children into an element in this order, before all others. A child that moves keeps the focus. */
export function arrange(parent, children) {
  const focused = parent.contains(document.activeElement) ? document.activeElement : null;
  let at = parent.firstElementChild;
  for (const child of children) {
    if (child === at) at = at.nextElementSibling;
    else parent.insertBefore(child, at);
  }
  if (focused && focused !== document.activeElement) focused.focus({ preventScroll: true });
}

/**
 * Brings the children of an element in line with a list, in order: creates one child for each key once, and updates it afterwards.
 * Elements keep their identity, and with it focus and selection.
 */
export function reconcile(parent, items, keyOf, make, update) {
  const old = new Map();
  for (const child of [...parent.children]) {
    // Hostile input can have two items with one key.
    old.get(child.dataset.key)?.remove();
    old.set(child.dataset.key, child);
  }
  const children = items.map((item) => {
    const key = keyOf(item);
    let child = old.get(key);
    if (child) old.delete(key);
    else {
      child = make(item);
      child.dataset.key = key;
    }
    update(child, item);
    return child;
  });
  for (const child of old.values()) child.remove();
  arrange(parent, children);
}
