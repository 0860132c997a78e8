// All gangs, pods that start all or none: those that wait first, longest first. What is searched,
// chosen and sorted stands in the address.

import {changeQuery} from './address.js';
import {readGangs} from './api.js';
import {el, emptyState, table} from './dom.js';
import {formatCount, formatSpan, plural} from './format.js';
import {gangLink, nodeLink, teamLink} from './links.js';
import {fillSelect, pager, PAGE_ROWS, sortable, sortSelect} from './lists.js';
import {keyOfSort, sortedBy} from './order.js';
import {Page} from './page.js';
import {serverNow, teamOfNamespace} from './store.js';
import {gangWords} from './words.js';

const MOST_NODES = 3;
const STATE_ORDER = {waiting: 0, gathering: 1, seated: 2, leaving: 3, running: 4};
const isRunning = ({state}) => state === 'running';

function stateCell({state}) {
  const [look, word, meaning] = gangWords(state);
  return el('span', {class: `chip ${look}`, title: meaning}, word);
}

// "3 of 4"; of a gang that never said how many it is, "3".
function placedText({bound, binding, size}) {
  return size ? `${formatCount(bound + binding)} of ${formatCount(size)}` : formatCount(bound + binding);
}

function nodesCell({nodes}) {
  if (nodes.length === 0) return '–';
  const more = nodes.length - MOST_NODES;
  return el('span', {class: 'teams'}, nodes.slice(0, MOST_NODES).map((node) => nodeLink(node)),
            more > 0 ? `and ${more} more` : null);
}

const COLUMNS = [
  {title: 'Gang', key: 'name', look: 'wide', of: (gang) => `${gang.namespace}/${gang.name}`, cell: (gang) => el('div', {},
    gangLink(gang.namespace, gang.name, {'data-key': `gang ${gang.namespace}/${gang.name}`}),
    el('span', {class: 'quiet-text under'}, gang.namespace))},
  {title: 'Team', key: 'team', of: (gang) => teamOfNamespace(gang.namespace), cell: (gang) => teamLink(teamOfNamespace(gang.namespace))},
  {title: 'State', key: 'state', of: ({state}) => STATE_ORDER[state] ?? 9, cell: stateCell},
  {title: 'Have a place', key: 'placed', look: 'number', of: ({bound, binding}) => bound + binding, cell: placedText},
  {title: 'Waits', key: 'waits', look: 'nowrap', of: (gang) => (isRunning(gang) ? null : gang.waitsSince), cell: (gang) =>
    (gang.waitsSince && !isRunning(gang) ? formatSpan(serverNow() - new Date(gang.waitsSince)) : '–')},
  {title: 'Nodes', key: 'nodes', of: ({nodes}) => nodes.length, cell: nodesCell},
  {title: 'Why it waits', look: 'wide', cell: ({text}) => text ?? '–'},
];
const LONGEST_FIRST = 'waits';

export class Gangs {
  #parts;
  #list;
  #state = {q: '', team: '', state: '', sort: ''};
  #page = 0;
  #palette = '';

  constructor(parts) {
    this.#parts = parts;
    this.#list = new Page(parts.table, {ask: readGangs, content: ({gangs}) => this.#content(gangs)});
    parts.form.addEventListener('submit', (event) => event.preventDefault());
    parts.form.addEventListener('input', ({target}) => this.#change({[target.name]: target.value}));
  }

  setQuery(query) {
    for (const key of Object.keys(this.#state)) this.#state[key] = query.get(key) ?? '';
    this.#page = Math.max(0, Number(query.get('page') ?? 1) - 1 || 0);
    this.#parts.text.value = this.#state.q;
    this.#parts.state.value = this.#state.state;
  }

  #change(changes, page = 0) {
    Object.assign(this.#state, changes);
    this.#page = page;
    changeQuery({...this.#state, page: page ? page + 1 : ''});
    this.#draw(true);
  }

  show(visible, teams, palette) {
    this.#palette = palette;
    if (visible) fillSelect(this.#parts.team, 'all', teams, this.#state.team);
    this.#draw(visible);
  }

  #draw(visible) {
    this.#list.show(visible ? ['gangs'] : null, this.#page, {...this.#state, palette: this.#palette});
  }

  #content(all) {
    const {q, team, state, sort} = this.#state;
    const words = q.toLowerCase().split(/\s+/).filter(Boolean);
    const found = all.filter((gang) => (!team || teamOfNamespace(gang.namespace) === team) &&
      (!state || isRunning(gang) === (state === 'running')) &&
      words.every((word) => [gang.namespace, '/', gang.name, ' ', ...gang.nodes].join('').toLowerCase().includes(word)));
    this.#parts.shown.textContent = q || team || state ? `${formatCount(found.length)} of ${plural(all.length, 'gang')}`
      : plural(all.length, 'gang');
    if (all.length === 0) {
      return [emptyState('There is no gang', 'Pods that name a gang, or come of a group that starts all or none, show here together.')];
    }
    if (found.length === 0) return [emptyState('No gang matches', 'Try fewer filters.')];
    const last = Math.ceil(found.length / PAGE_ROWS) - 1;
    const page = Math.min(this.#page, last);
    const {key, descending} = keyOfSort(sort || LONGEST_FIRST);
    const keyOf = (COLUMNS.find((column) => column.key === key) ?? COLUMNS[0]).of;
    const rows = sortedBy(found, keyOf, COLUMNS[0].of, descending).slice(page * PAGE_ROWS, (page + 1) * PAGE_ROWS);
    const onSort = (by) => this.#change({sort: by});
    return [sortSelect(COLUMNS, sort, onSort),
            table(sortable(COLUMNS, sort || LONGEST_FIRST, onSort), rows.map((gang) => COLUMNS.map(({cell}) => cell(gang))),
                  {class: 'gangs-table'}),
            pager(page, last, 'gangs', (to) => this.#change({}, to))];
  }
}
