// The pods that wait: reasons summed up first, then the pods, fifty a page. A row opens to the
// numbers behind the reason, what would change it, what every node answers, and a what-if.

import {readExplanation} from './api.js';
import {colourClass} from './colours.js';
import {button, el, emptyState, redraw} from './dom.js';
import {formatCount, formatLost, formatMoment, formatSpan, plural} from './format.js';
import {asksText, reasonText} from './model.js';
import {cluster, serverNow, teamOfNamespace} from './store.js';

const PAGE_ROWS = 50;
const AGAIN_MS = 5000;

export class Queue {
  #parts;
  #whatIf;
  #team = '';
  #reason = '';
  #page = 0;
  #open = null;         // uid of the pod whose explanation is shown
  #found = null;        // its explanation, or {error}
  #asked = 0;

  // `whatIf(pod or null)` opens the dialog.
  constructor(parts, whatIf) {
    this.#parts = parts;
    this.#whatIf = whatIf;
    parts.team.addEventListener('change', () => {
      this.#team = parts.team.value;
      this.#page = 0;
      this.#draw();
    });
    parts.tryPod.addEventListener('click', () => whatIf(null));
  }

  show(visible, teams) {
    if (!visible || !cluster.known.has('pods')) return;
    redraw(this.#parts.team, teams, () => [el('option', {value: ''}, 'all teams'),
      ...teams.map((team) => el('option', {value: team}, team))]);
    this.#parts.team.value = this.#team;
    this.#draw();
    const pod = cluster.waiting.find(({uid}) => uid === this.#open);
    if (pod && Date.now() - this.#asked > AGAIN_MS) this.#ask(pod);
  }

  #draw() {
    const pods = cluster.waiting.filter((pod) =>
      !this.#team || teamOfNamespace(pod.namespace) === this.#team);
    if (!pods.some((pod) => reasonText(pod) === this.#reason)) this.#reason = '';
    const matching = this.#reason ? pods.filter((pod) => reasonText(pod) === this.#reason) : pods;
    matching.sort((a, b) => ((a.waitsSince ?? '') < (b.waitsSince ?? '') ? -1 : 1));
    const last = Math.max(0, Math.ceil(matching.length / PAGE_ROWS) - 1);
    this.#page = Math.min(this.#page, last);
    const page = matching.slice(this.#page * PAGE_ROWS, (this.#page + 1) * PAGE_ROWS);
    redraw(this.#parts.reasons, [pods.map(reasonText), this.#reason, this.#team], () => this.#reasons(pods));
    // Ages are told in minutes: the table is not drawn anew for seconds.
    const minute = Math.floor(serverNow() / 60000);
    redraw(this.#parts.table, [page, this.#open, this.#found, last, minute, pods.length, this.#team], () => {
      if (pods.length === 0) {
        return emptyState('Nothing waits', cluster.placed
          ? `All ${plural(cluster.placed, 'GPU pod')} have their place.` : 'No pod asks for a GPU yet.');
      }
      return [this.#table(page), last > 0 ? this.#pages(last) : null];
    });
  }

  #reasons(pods) {
    const sums = new Map();
    for (const pod of pods) sums.set(reasonText(pod), (sums.get(reasonText(pod)) ?? 0) + 1);
    const sorted = [...sums].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
    const most = sorted[0]?.[1] ?? 1;
    return sorted.map(([text, sum]) => {
      const share = el('span', {class: 'reason-share', 'aria-hidden': 'true'});
      share.style.width = `${100 * sum / most}%`;
      return el('li', {}, button({
        'data-key': `reason ${text}`, 'aria-pressed': String(this.#reason === text),
      }, () => {
        this.#reason = this.#reason === text ? '' : text;
        this.#page = 0;
        this.#draw();
      }, el('strong', {}, formatCount(sum)), el('span', {class: 'reason-text'}, text), share));
    });
  }

  #table(page) {
    return el('div', {class: 'table-box'}, el('table', {class: 'queue-table'},
      el('thead', {}, el('tr', {}, ['Pod', 'Team', 'Asks for', 'Waits for', 'Why']
        .map((title) => el('th', {scope: 'col'}, title)))),
      el('tbody', {}, page.flatMap((pod) => this.#rows(pod)))));
  }

  #rows(pod) {
    const open = this.#open === pod.uid;
    const team = teamOfNamespace(pod.namespace);
    const soon = pod.reason?.eligibleAt
      ? el('span', {class: 'soon'}, `can start ${formatMoment(pod.reason.eligibleAt)}`) : null;
    const name = button({class: 'opens', 'data-key': `pod ${pod.uid}`, 'aria-expanded': String(open)},
                        () => this.#toggle(pod), pod.name);
    const row = el('tr', {class: open ? 'open' : null},
      el('td', {}, name, el('span', {class: 'quiet-text under'}, pod.namespace)),
      el('td', {}, el('span', {class: `swatch ${colourClass(team)}`}), team),
      el('td', {}, asksText(pod.asks),
         pod.asks?.gang ? el('span', {class: 'quiet-text under'}, `gang ${pod.asks.gang}`) : null),
      el('td', {class: 'nowrap'}, pod.waitsSince ? formatSpan(serverNow() - new Date(pod.waitsSince)) : '–'),
      el('td', {}, reasonText(pod), soon));
    return open ? [row, el('tr', {class: 'detail'}, el('td', {colspan: 5}, this.#detail(pod)))] : [row];
  }

  #toggle(pod) {
    this.#found = null;
    this.#open = this.#open === pod.uid ? null : pod.uid;
    this.#draw();
    if (this.#open) this.#ask(pod);
  }

  async #ask(pod) {
    this.#asked = Date.now();
    let found;
    try {
      found = await readExplanation(pod.namespace, pod.name);
    } catch (error) {
      found = {error: error.message};
    }
    if (this.#open !== pod.uid) return;
    this.#found = found;
    this.#draw();
  }

  #detail(pod) {
    const found = this.#found;
    if (!found) return el('p', {class: 'quiet-text'}, 'Asking every node …');
    if (found.error) return el('p', {class: 'bad'}, found.error);
    return el('div', {class: 'explanation'},
      pod.reason?.detail ? el('p', {}, pod.reason.detail) : null,
      el('h3', {}, 'What would change it'),
      el('p', {class: 'advice-line'}, found.advice || 'Nothing that Tranche knows of; see the nodes below.'),
      planWords(found.plan),
      claimWords(found.claims ?? []),
      button({class: 'primary', 'data-key': `whatif ${pod.uid}`}, () => this.#whatIf(pod), 'What if …'),
      el('h3', {}, 'What the nodes answer'),
      nodesList(found.nodes ?? []));
  }

  #pages(last) {
    const link = (text, page) => button({
      'data-key': `page ${text}`, disabled: page < 0 || page > last,
    }, () => {
      this.#page = page;
      this.#draw();
    }, text);
    return el('nav', {class: 'pages', 'aria-label': 'Pages of waiting pods'},
      link('Previous', this.#page - 1), el('span', {}, `page ${this.#page + 1} of ${last + 1}`),
      link('Next', this.#page + 1));
  }
}

function planWords(plan) {
  if (!plan) return null;
  if (plan.blocked) {
    const until = plan.blocked.until ? ` until ${formatMoment(plan.blocked.until)}` : '';
    return el('p', {}, `Making room is held up${until}: ${plan.blocked.detail || plan.blocked.text}.`);
  }
  const lost = plan.victims.reduce((sum, victim) => sum + victim.lostGpuSeconds, 0);
  return el('p', {}, `Room is being made on ${plan.node ?? 'a node'}: ${plan.progress}, ` +
            `${formatLost(lost)} of work lost.`);
}

function claimWords(claims) {
  if (claims.length === 0) return null;
  const words = claims.map((claim) =>
    `${claim.name}: ${claim.allocated ? `on ${claim.node ?? 'a node'}` : 'not allocated yet'}, ${claim.gpus} GPUs`);
  return el('p', {}, `Resource claims: ${words.join('; ')}.`);
}

function nodesList(nodes) {
  const groups = new Map();
  for (const verdict of nodes) {
    const text = verdict.fits ? 'it fits' : verdict.reason?.text || 'it does not fit';
    const detail = verdict.reason?.detail ?? '';
    const key = JSON.stringify([text, detail]);
    if (!groups.has(key)) groups.set(key, {text, detail, names: []});
    groups.get(key).names.push(verdict.name);
  }
  const sorted = [...groups.values()].sort((a, b) => b.names.length - a.names.length).slice(0, 12);
  if (sorted.length === 0) return el('p', {class: 'quiet-text'}, 'No node has answered yet.');
  return el('ul', {class: 'nodes-say'}, sorted.map(({text, detail, names}) => el('li', {},
    el('strong', {}, names.length > 3 ? plural(names.length, 'node') : names.join(', ')), `: ${text}`,
    detail ? el('span', {class: 'quiet-text under'}, detail) : null)));
}
