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

// Rows of cells (texts or elements) under columns. A column: 'Title', ['Title', class] or
// {title, look, head, sorted}, where `head` is an element instead of the title. A row: cells, or
// {cells, look, below}, where `below` is shown under the row over its whole width.
//
// On phones each row is a card whose cells carry their titles (lists.css). That takes the meaning of a table
// away from screen readers, which is why it is said once more.
export function table(columns, rows, attributes = {}) {
  const titles = columns.map((column) => {
    if (typeof column === 'string') return {title: column};
    return Array.isArray(column) ? {title: column[0], look: column[1]} : column;
  });
  // Cards leave out what has nothing to say.
  const isNothing = (cell) => cell === '' || cell === '–' || cell === null || cell === undefined;
  const cellOf = (cell, at) => el('td', {role: 'cell', 'data-title': titles[at].title,
    class: [titles[at].look, isNothing(cell) ? 'nothing' : null].filter(Boolean).join(' ') || null}, cell);
  return el('div', {class: 'table-box'}, el('table', {role: 'table', ...attributes},
    el('thead', {role: 'rowgroup'}, el('tr', {role: 'row'}, titles.map(({title, look, head, sorted}) =>
      el('th', {role: 'columnheader', scope: 'col', class: look, 'aria-sort': sorted}, head ?? title)))),
    el('tbody', {role: 'rowgroup'}, rows.flatMap((row) => {
      const {cells, look, below} = Array.isArray(row) ? {cells: row} : row;
      const line = el('tr', {role: 'row', class: look}, cells.map(cellOf));
      return below ? [line, el('tr', {role: 'row', class: 'detail'},
        el('td', {role: 'cell', colspan: titles.length}, below))] : [line];
    }))));
}

// Facts as terms and what they are; those without a value are left out.
export function facts(pairs, attributes = {}) {
  return el('dl', {class: 'about', ...attributes}, pairs.filter(([, value]) => value !== null && value !== undefined &&
    value !== '').map(([name, value]) => el('div', {}, el('dt', {}, name), el('dd', {}, value))));
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
