// What happened lately to pods and reclaims, the newest first. New events are asked for alone, and
// kept as long as the view is looked at; what is searched and chosen stands in the address.

import {changeQuery} from './address.js';
import {readEvents} from './api.js';
import {el, emptyState, table} from './dom.js';
import {formatCount, formatMoment, plural} from './format.js';
import {nodeLink, podLink, teamLink} from './links.js';
import {fillSelect, pager, PAGE_ROWS} from './lists.js';
import {Page} from './page.js';
import {eventKinds, eventWords} from './words.js';

// As many as are worth looking through; the command line and the API have more.
const MOST = 5000;

const NOTHING = {events: [], newest: 0};
const COLUMNS = [{title: 'When', look: 'nowrap'}, 'What', {title: 'Pod', look: 'wide'}, 'Team', 'Node', {title: 'More', look: 'wide'}];

function row({at, kind, namespace, name, node, leaf, text}) {
  const [look, word, meaning] = eventWords(kind);
  return [formatMoment(at), el('span', {class: `chip ${look}`, title: meaning}, word),
          name ? el('div', {}, podLink(namespace, name), el('span', {class: 'quiet-text under'}, namespace)) : '–',
          leaf ? teamLink(leaf) : '–', node ? nodeLink(node) : '–', text || '–'];
}

export class Events {
  #parts;
  #list;
  #state = {q: '', team: '', kind: ''};
  #page = 0;
  #palette = '';
  #known = NOTHING;  // newest first

  constructor(parts) {
    this.#parts = parts;
    this.#list = new Page(parts.table, {ask: () => this.#read(), content: (known) => this.#content(known)});
    parts.form.addEventListener('submit', (event) => event.preventDefault());
    parts.form.addEventListener('input', ({target}) => this.#change({[target.name]: target.value}));
    parts.kind.append(...eventKinds().map(([kind, word]) => el('option', {value: kind}, word)));
  }

  setQuery(query) {
    for (const key of Object.keys(this.#state)) this.#state[key] = query.get(key) ?? '';
    this.#page = Math.max(0, Number(query.get('page') ?? 1) - 1 || 0);
    this.#parts.text.value = this.#state.q;
    this.#parts.kind.value = this.#state.kind;
  }

  #change(changes, page = 0) {
    Object.assign(this.#state, changes);
    this.#page = page;
    changeQuery({...this.#state, page: page ? page + 1 : ''});
    this.#draw(true);
  }

  show(visible, teams, palette) {
    this.#palette = palette;
    if (!visible) this.#known = NOTHING;
    if (visible) fillSelect(this.#parts.team, 'all', teams, this.#state.team);
    this.#draw(visible);
  }

  #draw(visible) {
    this.#list.show(visible ? ['events'] : null, this.#page, {...this.#state, palette: this.#palette});
  }

  // Numbers are of one process of the server: where they begin anew, so does the list.
  async #read() {
    let {events, newest} = this.#known;
    let answer = await readEvents({since: newest || '', limit: MOST});
    if (answer.newest < newest) {
      events = [];
      answer = await readEvents({limit: MOST});
    }
    if (answer.events.length === 0 && events.length > 0) return this.#known;
    events = [...answer.events.reverse(), ...events].slice(0, MOST);
    this.#known = {events, newest: answer.newest};
    return this.#known;
  }

  #content({events}) {
    const {q, team, kind} = this.#state;
    const words = q.toLowerCase().split(/\s+/).filter(Boolean);
    const found = events.filter((event) => (!team || event.leaf === team) && (!kind || event.kind === kind) &&
      words.every((word) => [event.namespace, '/', event.name, ' ', event.node].join('').toLowerCase().includes(word)));
    this.#parts.shown.textContent = q || team || kind ? `${formatCount(found.length)} of ${plural(events.length, 'event')}`
      : plural(events.length, 'event');
    if (events.length === 0) {
      return [emptyState('Nothing has happened lately', 'What becomes of pods shows here: placed, running, evicted, ended.')];
    }
    if (found.length === 0) return [emptyState('No event matches', 'Try fewer filters.')];
    const last = Math.ceil(found.length / PAGE_ROWS) - 1;
    const page = Math.min(this.#page, last);
    return [table(COLUMNS, found.slice(page * PAGE_ROWS, (page + 1) * PAGE_ROWS).map(row), {class: 'events-table'}),
            pager(page, last, 'events', (to) => this.#change({}, to))];
  }
}
