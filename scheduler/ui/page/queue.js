// The pods that wait: reasons summed up first, then the pods, fifty a page. A row opens to the
// numbers behind the reason, what would change it, what every node answers, and a what-if. What is
// searched, chosen, sorted and open stands in the address.

import {changeQuery} from './address.js';
import {readExplanation} from './api.js';
import {button, el, emptyState, redraw, table} from './dom.js';
import {explanation} from './explanation.js';
import {formatCount, formatSpan, plural} from './format.js';
import {asksCell, podLink, teamLink} from './links.js';
import {fillSelect, pager, PAGE_ROWS, sortable, sortSelect} from './lists.js';
import {selectPods} from './pod_list.js';
import {startCell} from './starts.js';
import {cluster, ownersNow, serverNow, teamOfNamespace} from './store.js';
import {reasonText} from './words.js';

const AGAIN_MS = 5000;
const COLUMNS = [
  {title: 'Pod', key: 'name', look: 'wide'}, {title: 'Team', key: 'team'}, {title: 'Asks for', key: 'gpus'},
  {title: 'Waits', key: 'waits', look: 'nowrap'}, {title: 'Expected start', key: 'start'},
  {title: 'Why', key: 'reason', look: 'wide'}];
const LONGEST_FIRST = 'waits';

const nameOf = (pod) => `${pod.namespace}/${pod.name}`;

export class Queue {
  #parts;
  #whatIf;
  #state = {team: '', reason: '', text: '', sort: '', open: ''};  // open: 'ns/name'
  #page = 0;
  #found = null;        // explanation of the open pod, or {error}
  #foundFor = '';
  #asked = 0;

  // `whatIf(pod or null)` opens the dialog.
  constructor(parts, whatIf) {
    this.#parts = parts;
    this.#whatIf = whatIf;
    parts.team.addEventListener('change', () => this.#change({team: parts.team.value}));
    parts.text.addEventListener('input', () => this.#change({text: parts.text.value}));
    parts.tryPod.addEventListener('click', () => whatIf(null));
  }

  setQuery(query) {
    this.#state = {team: query.get('team') ?? '', reason: query.get('reason') ?? '', text: query.get('q') ?? '',
                   sort: query.get('sort') ?? '', open: query.get('open') ?? ''};
    this.#page = Math.max(0, Number(query.get('page') ?? 1) - 1 || 0);
    this.#parts.text.value = this.#state.text;
  }

  #change(changes, page = 0) {
    Object.assign(this.#state, changes);
    this.#page = page;
    const {team, reason, text, sort, open} = this.#state;
    changeQuery({team, reason, q: text, sort, open, page: page ? page + 1 : ''});
    this.#draw();
  }

  show(visible, teams) {
    if (!visible || !cluster.known.has('pods')) return;
    fillSelect(this.#parts.team, 'all teams', teams, this.#state.team);
    this.#draw();
    const pod = this.#openPod();
    if (pod && (this.#foundFor !== this.#state.open || Date.now() - this.#asked > AGAIN_MS)) this.#ask(pod);
  }

  #openPod() {
    return cluster.waiting.find((pod) => nameOf(pod) === this.#state.open);
  }

  #draw() {
    const {team, reason, text, open} = this.#state;
    const sort = this.#state.sort || LONGEST_FIRST;
    const {rows: pods} = selectPods(cluster.waiting, {team, text, sort}, ownersNow());
    const chosen = pods.some((pod) => reasonText(pod) === reason) ? reason : '';
    const matching = chosen ? pods.filter((pod) => reasonText(pod) === chosen) : pods;
    const last = Math.max(0, Math.ceil(matching.length / PAGE_ROWS) - 1);
    const page = Math.min(this.#page, last);
    const shown = matching.slice(page * PAGE_ROWS, (page + 1) * PAGE_ROWS);
    redraw(this.#parts.reasons, [pods.map(reasonText).sort(), chosen], () => this.#reasons(pods, chosen));
    // Ages are told in minutes: the table is not drawn anew for seconds.
    const minute = Math.floor(serverNow() / 60000);
    const found = this.#foundFor === open ? this.#found : null;
    redraw(this.#parts.table, [shown, open, found, last, minute, cluster.waiting.length, sort, ownersNow().declared], () => {
      if (cluster.waiting.length === 0) {
        return emptyState('Nothing waits', cluster.placed
          ? `All ${plural(cluster.placed, 'GPU pod')} have their place.` : 'No pod asks for a GPU yet.');
      }
      if (pods.length === 0) return emptyState('No waiting pod matches', 'Try fewer filters.');
      const onSort = (by) => this.#change({sort: by});
      return [sortSelect(COLUMNS, this.#state.sort, onSort),
              table(sortable(COLUMNS, sort, onSort), shown.map((pod) => this.#row(pod, found)), {class: 'queue-table'}),
              pager(page, last, 'waiting pods', (to) => this.#change({}, to))];
    });
  }

  #reasons(pods, chosen) {
    const sums = new Map();
    for (const pod of pods) sums.set(reasonText(pod), (sums.get(reasonText(pod)) ?? 0) + 1);
    const sorted = [...sums].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
    const most = sorted[0]?.[1] ?? 1;
    return sorted.map(([text, sum]) => {
      const share = el('span', {class: 'reason-share', 'aria-hidden': 'true'});
      share.style.width = `${100 * sum / most}%`;
      return el('li', {}, button({
        'data-key': `reason ${text}`, 'aria-pressed': String(chosen === text),
      }, () => this.#change({reason: chosen === text ? '' : text}),
      el('strong', {}, formatCount(sum)), el('span', {class: 'reason-text'}, text), share));
    });
  }

  #row(pod, found) {
    const name = nameOf(pod);
    const open = this.#state.open === name;
    const opens = button({class: 'opens', 'data-key': `pod ${name}`, 'aria-expanded': String(open),
                          'aria-label': `Why ${name} waits`}, () => this.#toggle(name));
    const whatIf = button({class: 'primary', 'data-key': `whatif ${name}`}, () => this.#whatIf(pod), 'What if …');
    return {
      look: open ? 'open' : null,
      cells: [
        el('div', {class: 'opener'}, opens, el('div', {}, podLink(pod.namespace, pod.name, {'data-key': `link ${name}`}),
           el('span', {class: 'quiet-text under'}, pod.namespace))),
        teamLink(teamOfNamespace(pod.namespace)),
        asksCell(pod),
        pod.waitsSince ? formatSpan(serverNow() - new Date(pod.waitsSince)) : '–',
        startCell(pod), reasonText(pod)],
      below: open ? explanation(pod, found, whatIf) : null,
    };
  }

  #toggle(name) {
    const open = this.#state.open === name ? '' : name;
    this.#change({open}, this.#page);
    const pod = this.#openPod();
    if (pod) this.#ask(pod);
  }

  async #ask(pod) {
    const name = nameOf(pod);
    if (this.#foundFor !== name) this.#found = null;
    this.#foundFor = name;
    this.#asked = Date.now();
    let found;
    try {
      found = await readExplanation(pod.namespace, pod.name);
    } catch (error) {
      found = {error: error.message};
    }
    if (this.#state.open !== name) return;
    this.#found = found;
    this.#draw();
  }
}
