// Makes of mdbook's page what keyboards and screen readers can use: the menu bar is a landmark, the switch of the sidebar is a button, and
// what is wider than the page can be scrolled by keys.

document.getElementById('mdbook-menu-bar').setAttribute('role', 'banner');

const label = document.getElementById('mdbook-sidebar-toggle');
const box = document.getElementById(label.htmlFor);
const button = document.createElement('button');
for (const name of ['class', 'title', 'aria-label', 'aria-controls']) button.setAttribute(name, label.getAttribute(name));
button.type = 'button';
button.append(...label.childNodes);
button.addEventListener('click', () => label.click());
const tell = () => button.setAttribute('aria-expanded', box.checked);
box.addEventListener('change', tell);
tell();
label.before(button);
label.classList.add('hidden');

const wide = document.querySelectorAll('.table-wrapper, pre > code');
const reach = () => wide.forEach((part) => (part.tabIndex = part.scrollWidth > part.clientWidth ? 0 : -1));
addEventListener('resize', reach);
reach();
