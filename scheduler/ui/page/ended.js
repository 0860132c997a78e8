// Pods that have ended, from the ledger: those that held GPUs within the last 24 hours and hold none now. A pod that held
// GPUs of two models has two rows.

import {readHeld} from './api.js';
import {el} from './dom.js';
import {formatMoment, formatNumber, formatSpan} from './format.js';
import {nodeLink, teamLink} from './links.js';
import {keyOfSort, sortedBy} from './order.js';
import {NO_TEAM} from './owners.js';
import {serverNow} from './store.js';

const DAY_MS = 86400000;
const AGAIN_MS = 15000;

const ran = ({since, until}) => new Date(until) - new Date(since);

export const ENDED_COLUMNS = [
  {title: 'Pod', key: 'name', look: 'wide', cell: ({namespace, pod}) =>
    el('div', {}, pod, el('span', {class: 'quiet-text under'}, namespace))},
  {title: 'Team', key: 'team', cell: ({leaf}) => (leaf ? teamLink(leaf) : '–')},
  {title: 'Class', key: 'class', cell: (row) => row.class || '–'},
  {title: 'GPUs', key: 'gpus', look: 'number', cell: ({gpus}) => formatNumber(Number(gpus))},
  {title: 'GPU model', key: 'model', cell: ({model}) => model},
  {title: 'Node', key: 'node', cell: ({node}) => nodeLink(node)},
  {title: 'Ran for', key: 'ran', look: 'nowrap', cell: (row) => formatSpan(ran(row))},
  {title: 'Ended', key: 'ended', look: 'nowrap', cell: ({until}) => formatMoment(until)},
];
const KEYS = {
  name: ({namespace, pod}) => `${namespace}/${pod}`,
  team: ({leaf}) => leaf || null,
  class: (row) => row.class || null,
  gpus: ({gpus}) => Number(gpus),
  model: ({model}) => model,
  node: ({node}) => node,
  ran,
  ended: ({until}) => Date.parse(until),
};

// The newest first where nobody says otherwise.
export function selectEnded(rows, {text, team, sort}) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const found = rows.filter(({namespace, pod, node, leaf, model, class: workload}) =>
    (!team || (leaf || NO_TEAM) === team) &&
    words.every((word) => [namespace, '/', pod, ' ', node, ' ', leaf, ' ', workload, ' ', model].join('').toLowerCase().includes(word)));
  const {key, descending} = keyOfSort(KEYS[keyOfSort(sort).key] ? sort : '-ended');
  return sortedBy(found, KEYS[key], KEYS.name, descending);
}

export class Ended {
  #answer = null;  // {rows} or {error, status}
  #asked = 0;

  // What is known, which is asked for again after a while.
  async read() {
    if (this.#answer && Date.now() - this.#asked < AGAIN_MS) return this.#answer;
    this.#asked = Date.now();
    try {
      const {rows} = await readHeld({from: new Date(serverNow() - DAY_MS).toISOString()});
      this.#answer = {rows: rows.filter(({until}) => until)};
    } catch (error) {
      this.#answer = {error: error.message, status: error.status ?? 0};
    }
    return this.#answer;
  }
}
