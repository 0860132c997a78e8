// What lists have in common: columns that sort, and pages.

import {button, el} from './dom.js';

export const PAGE_ROWS = 50;

// Columns {title, key, look, ...} with heads that sort: first up, then down, then as it was.
export function sortable(columns, sort, onSort) {
  return columns.map((column) => {
    if (!column.key) return column;
    const up = sort === column.key;
    const down = sort === `-${column.key}`;
    const next = up ? `-${column.key}` : down ? '' : column.key;
    return {...column, sorted: up ? 'ascending' : down ? 'descending' : null,
            head: button({class: 'sorts', 'data-key': `sort ${column.key}`}, () => onSort(next), column.title,
                         el('span', {class: 'arrow', 'aria-hidden': 'true'}, up ? '▲' : down ? '▼' : ''))};
  });
}

// The same where there is no room for heads.
export function sortSelect(columns, sort, onSort) {
  const select = el('select', {'data-key': 'sort by'}, el('option', {value: ''}, 'usual order'),
    columns.filter(({key}) => key).flatMap(({key, title}) => [
      el('option', {value: key}, `${title}, ascending`), el('option', {value: `-${key}`}, `${title}, descending`)]));
  select.value = sort;
  select.addEventListener('change', () => onSort(select.value));
  return el('label', {class: 'phone-sort'}, 'Sort by ', select);
}

export function pager(page, last, what, onPage) {
  if (last <= 0) return null;
  const step = (text, to) => button({'data-key': `page ${text}`, disabled: to < 0 || to > last}, () => onPage(to), text);
  return el('nav', {class: 'pages', 'aria-label': `Pages of ${what}`}, step('Previous', page - 1),
            el('span', {}, `page ${page + 1} of ${last + 1}`), step('Next', page + 1));
}

// Fills a select with names, keeps what is chosen even if it is not among them.
export function fillSelect(select, first, names, chosen) {
  const all = chosen && !names.includes(chosen) ? [...names, chosen] : names;
  const signature = JSON.stringify([first, all]);
  if (select.dataset.signature !== signature) {
    select.dataset.signature = signature;
    select.replaceChildren(el('option', {value: ''}, first), ...all.map((name) => el('option', {value: name}, name)));
  }
  select.value = chosen;
}
