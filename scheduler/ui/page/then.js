// Who had which GPUs at a moment, from the ledger: chosen by its time, or by a slider over 24 hours. The
// moment, what is searched and the page of the table stand in the address.

import {changeQuery} from './address.js';
import {readHeld} from './api.js';
import {el, emptyState, redraw, table} from './dom.js';
import {formatMoment, formatNumber, gpuCount, plural} from './format.js';
import {nodeLink, podLink, swatch, teamLink} from './links.js';
import {pager, PAGE_ROWS} from './lists.js';
import {NO_TEAM} from './owners.js';
import {cluster, serverNow} from './store.js';

const MINUTE_MS = 60000;
const DAY_MS = 86400000;
const STEP_MS = 5 * MINUTE_MS;
const AGAIN_MS = 15000;
const PAUSE_MS = 150;  // a slider on its way asks nobody

const COLUMNS = ['Node', {title: 'Pod', look: 'wide'}, 'Team', 'Class', ['GPUs', 'number'], 'GPU model',
                 {title: 'Since', look: 'nowrap'}, {title: 'Until', look: 'nowrap'}];

// What inputs of a date and a time hold: of this zone, to the minute.
function localText(at) {
  const date = new Date(at);
  return new Date(at - date.getTimezoneOffset() * MINUTE_MS).toISOString().slice(0, 16);
}

function row({node, namespace, pod, leaf, class: workload, gpus, model, since, until}) {
  return [nodeLink(node), el('div', {}, podLink(namespace, pod), el('span', {class: 'quiet-text under'}, namespace)),
          leaf ? teamLink(leaf) : '–', workload || '–', formatNumber(Number(gpus)), model, formatMoment(since),
          until ? formatMoment(until) : 'still'];
}

export class Then {
  #parts;
  #at = null;       // ms; null: now
  #find = '';
  #page = 0;
  #answer = null;   // {at, rows} or {error, status}
  #asked = 0;
  #serial = 0;
  #timer = null;

  constructor(parts) {
    this.#parts = parts;
    parts.form.addEventListener('submit', (event) => event.preventDefault());
    parts.at.addEventListener('change', () => this.#choose(Date.parse(parts.at.value)));
    parts.slider.addEventListener('input', () => {
      const at = Number(parts.slider.value);
      this.#choose(at >= Number(parts.slider.max) && at > serverNow() - 2 * STEP_MS ? null : at, PAUSE_MS);
    });
    parts.now.addEventListener('click', () => this.#choose(null));
    parts.find.addEventListener('input', () => {
      this.#find = parts.find.value;
      this.#turn(0);
    });
  }

  setQuery(query) {
    const at = Date.parse(query.get('at') ?? '');
    this.#find = query.get('find') ?? '';
    this.#parts.find.value = this.#find;
    this.#page = Math.max(0, Number(query.get('page') ?? 1) - 1 || 0);
    const asked = Number.isNaN(at) ? null : at;
    if (asked === this.#at) return;
    this.#at = asked;
    this.#asked = 0;
  }

  // NaN: the input was emptied, or holds no time; nothing changes.
  #choose(at, pause = 0) {
    if (Number.isNaN(at)) return;
    this.#at = at === null || at >= serverNow() ? null : at;
    this.#page = 0;
    this.#remember();
    this.#place();
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#ask(), pause);
  }

  #turn(page) {
    this.#page = page;
    this.#remember();
    this.#draw();
  }

  #remember() {
    changeQuery({at: this.#at === null ? '' : new Date(this.#at).toISOString(), find: this.#find,
                 page: this.#page ? this.#page + 1 : ''});
  }

  show(visible) {
    // The server's clock comes with the reclaims.
    if (!visible || !cluster.known.has('reclaims')) return;
    this.#place();
    const again = this.#at === null ? AGAIN_MS : Infinity;
    if (this.#asked === 0 || Date.now() - this.#asked > again) this.#ask();
    else if (this.#answer) this.#draw();
  }

  // Input and slider where the moment is: the slider is of the last 24 hours, or of those around an older one.
  #place() {
    const {at, slider, shown, from, to} = this.#parts;
    const now = Math.floor(serverNow() / STEP_MS) * STEP_MS;
    const moment = this.#at ?? serverNow();
    const end = moment > now - DAY_MS ? now : Math.ceil((moment + DAY_MS / 2) / STEP_MS) * STEP_MS;
    slider.max = end;
    slider.min = end - DAY_MS;
    slider.step = STEP_MS;
    slider.value = Math.min(moment, end);
    const words = this.#at === null ? 'now' : formatMoment(new Date(moment).toISOString());
    slider.setAttribute('aria-valuetext', words);
    shown.textContent = words;
    from.textContent = formatMoment(new Date(end - DAY_MS).toISOString());
    to.textContent = end === now ? 'now' : formatMoment(new Date(end).toISOString());
    if (document.activeElement !== at) at.value = localText(moment);
  }

  async #ask() {
    this.#asked = Date.now();
    this.#serial += 1;
    const serial = this.#serial;
    let answer;
    try {
      answer = await readHeld({at: this.#at === null ? '' : new Date(this.#at).toISOString()});
    } catch (error) {
      answer = {error: error.message, status: error.status ?? 0};
    }
    if (serial !== this.#serial) return;
    this.#answer = answer;
    this.#draw();
  }

  #draw() {
    const answer = this.#answer;
    if (!answer) return;
    redraw(this.#parts.body, [answer.error ?? answer.rows, this.#at, this.#find, this.#page], () => {
      if (answer.status === 404) return null;  // the report above says so
      if (answer.error) return el('p', {class: 'bad', role: 'alert'}, answer.error);
      if (answer.rows.length === 0) {
        return emptyState('Nobody held a GPU then', 'The ledger knows of nobody. Try another moment.');
      }
      return this.#content(answer.rows);
    });
  }

  #content(rows) {
    const teams = new Map();
    for (const {leaf, gpus} of rows) teams.set(leaf || NO_TEAM, (teams.get(leaf || NO_TEAM) ?? 0) + Number(gpus));
    const sums = [...teams].sort(([a, few], [b, more]) => more - few || (a < b ? -1 : 1));
    const words = this.#find.toLowerCase().split(/\s+/).filter(Boolean);
    const found = rows.filter(({node, namespace, pod, leaf, model}) =>
      words.every((word) => [node, ' ', namespace, '/', pod, ' ', leaf, ' ', model].join('').toLowerCase().includes(word)));
    const last = Math.max(0, Math.ceil(found.length / PAGE_ROWS) - 1);
    const page = Math.min(this.#page, last);
    const pods = new Set(rows.map(({namespace, pod}) => `${namespace}/${pod}`)).size;
    const all = rows.reduce((sum, {gpus}) => sum + Number(gpus), 0);
    return [
      el('p', {class: 'then-sum'}, el('strong', {}, gpuCount(Math.round(1000 * all))), ` held by ${plural(pods, 'pod')}`),
      el('ul', {class: 'then-teams', 'aria-label': 'By team'}, sums.map(([team, gpus]) =>
        el('li', {}, swatch(team), team, ' ', el('strong', {}, formatNumber(gpus))))),
      found.length === 0 ? emptyState('Nothing matches', 'Try fewer words.')
        : table(COLUMNS, found.slice(page * PAGE_ROWS, (page + 1) * PAGE_ROWS).map(row), {class: 'then-table'}),
      pager(page, last, 'pods of then', (to) => this.#turn(to))];
  }
}
