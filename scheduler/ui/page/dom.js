// Builds elements from data without ever parsing text as markup.

const SVG = 'http://www.w3.org/2000/svg';

function build(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    element.setAttribute(key, value === true ? '' : String(value));
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

// Example: el('p', {class: 'empty', title: 'x'}, 'text', child)
export function el(name, attributes = {}, ...children) {
  return build(document.createElement(name), attributes, children);
}

export function svg(name, attributes = {}, ...children) {
  return build(document.createElementNS(SVG, name), attributes, children);
}

export const byId = (id) => document.getElementById(id);

// A button that calls `act`; `attributes` as of el.
export function button(attributes, act, ...children) {
  const element = el('button', {type: 'button', ...attributes}, ...children);
  element.addEventListener('click', act);
  return element;
}

// Rows of cells (texts or elements) under titles; a title may be [text, class].
export function table(titles, rows, attributes = {}) {
  const looks = titles.map((title) => (Array.isArray(title) ? title : [title, null]));
  return el('div', {class: 'table-box'}, el('table', attributes,
    el('thead', {}, el('tr', {}, looks.map(([title, look]) =>
      el('th', {scope: 'col', class: look}, title)))),
    el('tbody', {}, rows.map((cells) => el('tr', {}, cells.map((cell, at) =>
      el('td', {class: looks[at][1]}, cell)))))));
}

// A word with its explanation, for pointer, keyboard and screen reader.
export function term(text, meaning) {
  return el('button', {type: 'button', class: 'term', 'data-meaning': meaning}, text);
}

export function emptyState(title, text) {
  return el('div', {class: 'empty'}, el('p', {class: 'empty-title'}, title),
            text ? el('p', {}, text) : null);
}

// Replaces the content of `root` only when `data` changed; keeps the focus on the element with the
// same data-key. Returns whether it drew.
const drawn = new WeakMap();
export function redraw(root, data, content) {
  const signature = JSON.stringify(data);
  if (drawn.get(root) === signature) return false;
  drawn.set(root, signature);
  const key = root.contains(document.activeElement) ? document.activeElement.dataset?.key : null;
  root.replaceChildren(...[content()].flat().filter(Boolean));
  if (key) root.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus({preventScroll: true});
  return true;
}
