// What each team may use, uses, borrows and lends; its budgets; who lends to whom.

import {Budgets} from './budgets.js';
import {colourClass} from './colours.js';
import {el, emptyState, redraw, table, term} from './dom.js';
import {formatNumber, plural} from './format.js';
import {lendingFlows} from './lending.js';
import {teamLink} from './links.js';
import {cluster} from './store.js';
import {lineWord} from './words.js';

const MEANINGS = {
  nominal: 'What the team owns: it gets this much whenever it needs it, if need be by taking lent GPUs back.',
  used: 'GPUs its pods hold now. A half of a GPU counts 0.5.',
  borrowed: 'GPUs of other teams it uses because they are idle there. Their owners can take them back.',
  lent: 'GPUs it owns, does not use, and other teams use now. They come back when it needs them.',
  Observe: 'Counts and says what it would refuse, and refuses nothing.',
  Off: 'Not in force.',
};

function lineBar(quota, line) {
  const nominal = line.nominalGpus ?? 0;
  const own = Math.max(0, line.usedGpus - line.borrowedGpus);
  const lent = line.lentGpus;
  const reach = line.availableGpus === null ? line.usedGpus
    : line.usedGpus + Math.max(0, line.availableGpus);
  const full = Math.max(nominal, reach, line.usedGpus, 0.001);
  const part = (amount, look, title) => {
    if (amount <= 0) return null;
    const element = el('span', {class: `bar-part ${look}`, title});
    element.style.width = `${100 * amount / full}%`;
    return element;
  };
  const idle = Math.max(0, nominal - own - lent);
  const bar = el('div', {class: 'bar', 'aria-hidden': 'true'},
    part(own, colourClass(quota.name), `${formatNumber(own)} GPUs of its own in use`),
    line.borrowedGpus > 0 ? null : part(lent, 'lent', `${formatNumber(lent)} GPUs lent`),
    line.borrowedGpus > 0 ? null : part(idle, 'idle', `${formatNumber(idle)} GPUs of its own idle`),
    part(line.borrowedGpus, `${colourClass(quota.name)} borrowed`,
         `${formatNumber(line.borrowedGpus)} GPUs borrowed`));
  if (nominal > 0 && nominal <= full) {
    const mark = el('span', {class: 'nominal', title: `owns ${formatNumber(nominal)} GPUs`});
    mark.style.left = `${100 * nominal / full}%`;
    bar.append(mark);
  }
  return bar;
}

function lineRow(quota, line) {
  const owns = line.nominalGpus === null ? 'without limit' : `of ${formatNumber(line.nominalGpus)} owned`;
  const facts = [];
  if (line.borrowedGpus > 0) facts.push(`${formatNumber(line.borrowedGpus)} borrowed`);
  if (line.lentGpus > 0) facts.push(`${formatNumber(line.lentGpus)} lent`);
  facts.push(line.availableGpus === null ? 'no limit'
    : `can take ${formatNumber(Math.max(0, line.availableGpus))} more`);
  return el('div', {class: 'quota-line'},
    el('div', {class: 'quota-words'},
      el('span', {class: 'model'}, lineWord(line)),
      el('span', {}, el('strong', {}, formatNumber(line.usedGpus)), ` ${owns}`),
      el('span', {class: 'quiet-text'}, facts.join(' · '))),
    lineBar(quota, line));
}

export function quotaLines(quota) {
  return quota.lines.length ? quota.lines.map((line) => lineRow(quota, line))
    : el('p', {class: 'quiet-text'}, 'No limits of its own: shares what its group has.');
}

// What the parts of a bar mean.
export function quotaKey() {
  return el('p', {class: 'key'}, 'Each bar: ', el('span', {class: 'swatch sample'}), 'own GPUs in use ',
    el('span', {class: 'swatch sample borrowed'}), term('borrowed', MEANINGS.borrowed), ' ',
    el('span', {class: 'swatch lent'}), term('lent', MEANINGS.lent), ' ',
    el('span', {class: 'swatch idle'}), 'idle ',
    el('span', {class: 'nominal-key'}), term('what the team owns', MEANINGS.nominal));
}

function quotaCard(quota) {
  const waits = quota.pending.workloads > 0
    ? `${plural(quota.pending.workloads, 'pod')} waiting for ${formatNumber(quota.pending.gpus)} GPUs`
    : 'nothing waiting';
  return el('section', {class: 'card quota', 'aria-label': `Team ${quota.name}`},
    el('div', {class: 'card-head'},
      el('h3', {}, teamLink(quota.name)),
      quota.parent ? el('span', {class: 'quiet-text'}, `in ${quota.parent}`) : null,
      quota.mode === 'Enforce' ? null : term(quota.mode, MEANINGS[quota.mode] ?? ''),
      quota.suspended ? el('span', {class: 'chip bad'}, 'budget used up') : null,
      el('span', {class: `waits${quota.pending.workloads ? ' some' : ''}`}, waits)),
    quotaLines(quota),
    quota.namespaces.length ? el('p', {class: 'quiet-text small'},
      `Namespaces: ${quota.namespaces.join(', ')}`) : null);
}

// Teams first, groups of teams after them.
function inOrder(quotas) {
  const parents = new Set(quotas.map((quota) => quota.parent).filter(Boolean));
  return {teams: quotas.filter((quota) => !parents.has(quota.name)),
          groups: quotas.filter((quota) => parents.has(quota.name))};
}

export class Teams {
  #parts;
  #budgets;

  constructor(parts) {
    this.#parts = parts;
    this.#budgets = new Budgets(parts.budgets);
  }

  // `palette`: changes when colours do.
  show(visible, palette) {
    if (cluster.known.has('budgets')) this.#budgets.show(visible, cluster.budgets);
    if (!visible || !cluster.known.has('quotas')) return;
    const {teams, groups} = inOrder(cluster.quotas);
    redraw(this.#parts.quotas, [teams, groups, palette], () => (teams.length ? [
      quotaKey(),
      el('div', {class: 'cards'}, teams.map(quotaCard)),
      groups.length ? el('details', {class: 'groups-of-teams'},
        el('summary', {'data-key': 'groups'}, `Groups of teams (${groups.length})`),
        el('div', {class: 'cards'}, groups.map(quotaCard))) : null,
      this.#numbers(teams)]
      : emptyState('No team has a quota',
                   'Nobody is limited. An administrator declares teams with GPUQuota objects.')));
    redraw(this.#parts.lending, [cluster.quotas, palette], () => lendingFlows(cluster.quotas));
  }

  #numbers(teams) {
    const number = (value) => (value === null ? 'no limit' : formatNumber(value));
    const rows = teams.flatMap((quota) => quota.lines.map((line) => [
      teamLink(quota.name), lineWord(line), number(line.nominalGpus), number(line.usedGpus), number(line.borrowedGpus),
      number(line.lentGpus), number(line.availableGpus)]));
    const right = ['Owned', 'Used', 'Borrowed', 'Lent', 'Can take'].map((title) => [`${title} (GPUs)`, 'number']);
    return el('details', {}, el('summary', {'data-key': 'numbers'}, 'The same as a table'),
              table(['Team', 'Model', ...right], rows));
  }

}
