// All pods that hold or want GPUs: searched, narrowed and sorted by the worker, fifty a page here.
// What is searched, chosen and sorted, and which columns are shown, stands in the address.

import {changeQuery} from './address.js';
import {el, emptyState, redraw, table} from './dom.js';
import {Ended, ENDED_COLUMNS, selectEnded} from './ended.js';
import {formatCount, formatMemory, formatMoment, formatSpan, gpuCount, plural} from './format.js';
import {asksCell, gangLink, nodeLink, podLink, teamLink} from './links.js';
import {fillSelect, pager, PAGE_ROWS, sortable, sortSelect} from './lists.js';
import {heldMilli, isWaiting} from './pod_list.js';
import {startCell} from './starts.js';
import {cluster, listPods, nodeOf, serverNow, teamOfNamespace} from './store.js';
import {quotaWords, reasonText, stateWords} from './words.js';

function stateCell(pod) {
  const [look, word, meaning] = stateWords(pod);
  return el('span', {class: `chip ${look}`, title: meaning}, word);
}

// "2 GPUs", "1g.10gb", "0.5 GPUs"
export function heldText(pod) {
  const slices = (pod.devices ?? []).filter((device) => device.migProfile).map((device) => device.migProfile);
  if (slices.length) return slices.length > 2 ? `${slices.length} MIG slices` : slices.join(', ');
  const milli = heldMilli(pod);
  if (milli === 0 && pod.devices?.length) {
    return `${formatMemory(pod.devices.reduce((sum, device) => sum + device.mib, 0))} of GPU memory`;
  }
  return gpuCount(milli);
}

// Columns people choose from. `usual`: shown unless the address says otherwise.
const COLUMNS = [
  {id: 'name', title: 'Pod', key: 'name', look: 'wide', usual: true, cell: (pod) => el('div', {},
    podLink(pod.namespace, pod.name, {'data-key': `pod ${pod.namespace}/${pod.name}`}),
    el('span', {class: 'quiet-text under'}, pod.namespace))},
  {id: 'team', title: 'Team', key: 'team', usual: true, cell: (pod) => teamLink(teamOfNamespace(pod.namespace))},
  {id: 'state', title: 'State', key: 'state', usual: true, cell: stateCell},
  {id: 'gpus', title: 'GPUs', key: 'gpus', usual: true, cell: (pod) =>
    (isWaiting(pod) ? asksCell(pod) : heldText(pod))},
  {id: 'node', title: 'Node', key: 'node', usual: true, cell: (pod) => (pod.node && !isWaiting(pod)
    ? el('div', {}, nodeLink(pod.node), el('span', {class: 'quiet-text under'}, nodeOf(pod.node)?.model ?? ''))
    : '–')},
  {id: 'quota', title: 'Quota', key: 'quota', usual: true, cell: (pod) => {
    const [word, meaning] = quotaWords(pod.quotaState);
    return el('span', {title: meaning || null}, word);
  }},
  {id: 'class', title: 'Class', key: 'class', cell: (pod) => pod.class ?? '–'},
  {id: 'waits', title: 'Waits', key: 'waits', look: 'nowrap', usual: true, cell: (pod) =>
    (pod.waitsSince ? formatSpan(serverNow() - new Date(pod.waitsSince)) : '–')},
  {id: 'start', title: 'Expected start', key: 'start', cell: (pod) => (isWaiting(pod) ? startCell(pod) : '–')},
  {id: 'idle', title: 'Idle for', key: 'idle', look: 'nowrap', cell: (pod) =>
    (pod.use?.idleSince ? formatSpan(serverNow() - new Date(pod.use.idleSince)) : '–')},
  {id: 'gang', title: 'Gang', key: 'gang', cell: (pod) =>
    (pod.gang ? gangLink(pod.namespace, pod.gang) : '–')},
  {id: 'reason', title: 'Why it waits', key: 'reason', look: 'wide', cell: (pod) =>
    (isWaiting(pod) ? reasonText(pod) : '–')},
  {id: 'eligible', title: 'Not before', look: 'nowrap', cell: (pod) => formatMoment(pod.reason?.eligibleAt)},
];
const USUAL = COLUMNS.filter(({usual}) => usual).map(({id}) => id).join();

export class Pods {
  #parts;
  #state = {text: '', team: '', state: '', quota: '', sort: '', cols: ''};
  #page = 0;
  #visible = false;
  #asking = false;
  #again = false;
  #ended = new Ended();

  constructor(parts) {
    this.#parts = parts;
    parts.form.addEventListener('submit', (event) => event.preventDefault());
    parts.form.addEventListener('input', ({target}) => {
      if (target.name in this.#state) this.#change({[target.name]: target.value});
    });
    parts.columns.append(...COLUMNS.slice(1).map(({id, title}) => el('label', {class: 'check'},
      el('input', {type: 'checkbox', value: id}), ` ${title}`)));
    parts.columns.addEventListener('change', () => {
      const cols = ['name', ...[...parts.columns.querySelectorAll(':checked')].map(({value}) => value)].join();
      this.#change({cols: cols === USUAL ? '' : cols});
    });
  }

  setQuery(query) {
    this.#state = {text: query.get('q') ?? '', team: query.get('team') ?? '', state: query.get('state') ?? '',
                   quota: query.get('quota') ?? '', sort: query.get('sort') ?? '', cols: query.get('cols') ?? ''};
    this.#page = Math.max(0, Number(query.get('page') ?? 1) - 1 || 0);
    const {text, state, quota} = this.#parts;
    text.value = this.#state.text;
    state.value = this.#state.state;
    quota.value = this.#state.quota;
    const shown = this.#columns().map(({id}) => id);
    for (const box of this.#parts.columns.querySelectorAll('input')) box.checked = shown.includes(box.value);
  }

  #columns() {
    const ids = (this.#state.cols || USUAL).split(',');
    return COLUMNS.filter(({id}) => id === 'name' || ids.includes(id));
  }

  #change(changes, page = 0) {
    Object.assign(this.#state, changes);
    this.#page = page;
    const {text, ...rest} = this.#state;
    changeQuery({q: text, ...rest, page: page ? page + 1 : ''});
    this.#ask();
  }

  show(visible, teams) {
    this.#visible = visible;
    if (!visible || !cluster.known.has('pods')) return;
    fillSelect(this.#parts.team, 'all', teams, this.#state.team);
    this.#ask();
  }

  // One question at a time; what changed meanwhile is asked for once more.
  async #ask() {
    this.#again = this.#asking;
    if (this.#asking) return;
    this.#asking = true;
    const {text, team, state, quota, sort} = this.#state;
    const ended = state === 'ended' ? await this.#ended.read() : null;
    const list = ended ? null
      : await listPods({text, team, state, quota, sort, from: this.#page * PAGE_ROWS, count: PAGE_ROWS});
    this.#asking = false;
    if (this.#again) return this.#ask();
    if (!this.#visible) return;
    // Of what has ended the ledger does not say whether it was borrowed, nor can its columns be chosen.
    for (const part of [this.#parts.quota, this.#parts.columns]) part.closest('label, details').hidden = Boolean(ended);
    if (ended) return this.#drawEnded(ended);
    const last = Math.max(0, Math.ceil(list.total / PAGE_ROWS) - 1);
    if (this.#page > last) return this.#change({}, last);
    this.#draw(list, last);
  }

  #drawEnded({rows, error, status}) {
    const {text, team, sort} = this.#state;
    const found = rows ? selectEnded(rows, {text, team, sort}) : [];
    const last = Math.max(0, Math.ceil(found.length / PAGE_ROWS) - 1);
    const page = Math.min(this.#page, last);
    const {shown, table: body} = this.#parts;
    shown.textContent = !rows ? '' : `${text || team ? `${formatCount(found.length)} of ` : ''}${plural(rows.length, 'pod')} of the last 24 hours`;
    redraw(body, [error ?? found, sort, page, 'ended'], () => {
      if (status === 404) return emptyState('Nobody keeps what has ended', 'The server has no ledger (--ledger).');
      if (error) return el('p', {class: 'bad', role: 'alert'}, error);
      if (rows.length === 0) return emptyState('No pod with a GPU has ended', 'Of the last 24 hours the ledger knows of none.');
      if (found.length === 0) return emptyState('No pod matches', 'Try fewer filters.');
      const onSort = (by) => this.#change({sort: by});
      return [sortSelect(ENDED_COLUMNS, sort, onSort),
              table(sortable(ENDED_COLUMNS, sort, onSort), found.slice(page * PAGE_ROWS, (page + 1) * PAGE_ROWS)
                .map((row) => ENDED_COLUMNS.map(({cell}) => cell(row))), {class: 'ended-table'}),
              pager(page, last, 'ended pods', (to) => this.#change({}, to))];
    });
  }

  #draw({rows, total, all}, last) {
    const {text, team, state, quota, sort, cols} = this.#state;
    const filtered = text || team || state || quota;
    this.#parts.shown.textContent = filtered ? `${formatCount(total)} of ${plural(all, 'pod')}` : plural(all, 'pod');
    const minute = Math.floor(serverNow() / 60000);
    const owners = rows.map((pod) => teamOfNamespace(pod.namespace));
    redraw(this.#parts.table, [rows, owners, total, sort, cols, this.#page, minute], () => {
      if (all === 0) return emptyState('No pod holds or asks for a GPU', 'Pods appear here as soon as they ask for one.');
      if (total === 0) return emptyState('No pod matches', 'Try fewer filters.');
      const columns = this.#columns();
      const onSort = (by) => this.#change({sort: by});
      return [sortSelect(columns, sort, onSort),
              table(sortable(columns, sort, onSort), rows.map((pod) => columns.map(({cell}) => cell(pod))),
                    {class: 'pods-table'}),
              pager(this.#page, last, 'pods', (to) => this.#change({}, to))];
    });
  }
}
