// What each team may use, uses, borrows and lends; its budgets; who lends to whom.

import {readBurnDown} from './api.js';
import {burnDownChart} from './charts.js';
import {colourClass} from './colours.js';
import {el, emptyState, redraw, table, term} from './dom.js';
import {formatHours, formatMoment, formatNumber, formatSpan, plural} from './format.js';
import {lendingFlows} from './lending.js';
import {cluster, serverNow} from './store.js';

const BURN_DOWN_EVERY_MS = 30000;

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
      el('span', {class: 'model'}, line.model === 'any' ? 'any model' : line.model),
      el('span', {}, el('strong', {}, formatNumber(line.usedGpus)), ` ${owns}`),
      el('span', {class: 'quiet-text'}, facts.join(' · '))),
    lineBar(quota, line));
}

function quotaCard(quota) {
  const waits = quota.pending.workloads > 0
    ? `${plural(quota.pending.workloads, 'pod')} waiting for ${formatNumber(quota.pending.gpus)} GPUs`
    : 'nothing waiting';
  return el('section', {class: 'card quota', 'aria-label': `Team ${quota.name}`},
    el('div', {class: 'card-head'},
      el('h3', {}, el('span', {class: `swatch ${colourClass(quota.name)}`}), quota.name),
      quota.parent ? el('span', {class: 'quiet-text'}, `in ${quota.parent}`) : null,
      quota.mode === 'Enforce' ? null : term(quota.mode, MEANINGS[quota.mode] ?? ''),
      quota.suspended ? el('span', {class: 'chip bad'}, 'budget used up') : null,
      el('span', {class: `waits${quota.pending.workloads ? ' some' : ''}`}, waits)),
    quota.lines.length ? quota.lines.map((line) => lineRow(quota, line))
      : el('p', {class: 'quiet-text'}, 'No limits of its own: shares what its group has.'),
    quota.namespaces.length ? el('p', {class: 'quiet-text small'},
      `Namespaces: ${quota.namespaces.join(', ')}`) : null);
}

// Teams first, groups of teams after them.
function inOrder(quotas) {
  const parents = new Set(quotas.map((quota) => quota.parent).filter(Boolean));
  return {teams: quotas.filter((quota) => !parents.has(quota.name)),
          groups: quotas.filter((quota) => parents.has(quota.name))};
}

const STATES = {
  OK: ['good', 'on course'], Warning: ['warn', 'running low'], Exhausted: ['bad', 'used up'],
};

function budgetWords(budget, burn) {
  const left = Number(budget.effective) - Number(budget.used);
  const sentences = [];
  if (budget.exhaustsAt) {
    sentences.push(`At the present rate it is used up on ${formatMoment(budget.exhaustsAt)}, ` +
      `in ${formatSpan(new Date(budget.exhaustsAt) - serverNow())}.`);
  } else if (left <= 0) {
    sentences.push('It is used up.');
  } else if (budget.windowEnd) {
    sentences.push('What runs now does not use it up before the period ends.');
  }
  if (burn && Number(burn.burningPerHour) > 0) {
    sentences.push(`Running work uses ${formatHours(burn.burningPerHour)} every hour.`);
  }
  if (budget.windowEnd) sentences.push(`The period ends on ${formatMoment(budget.windowEnd)}.`);
  return sentences.join(' ');
}

function seconds(text) {
  return new Date(text).getTime() / 1000;
}

function burnData(budget, burn) {
  const effective = Number(burn.effective);
  const points = burn.points.map(({at, used}) => ({at: seconds(at), left: Math.max(0, effective - Number(used))}));
  const now = points.at(-1);
  const end = burn.windowEnd ? seconds(burn.windowEnd) : now.at;
  const rate = Number(burn.burningPerHour) / 3600;
  let projection = null;
  if (burn.exhaustsAt && seconds(burn.exhaustsAt) > now.at) {
    projection = [[now.at, now.left], [seconds(burn.exhaustsAt), 0]];
  } else if (burn.windowEnd && now.left - rate * (end - now.at) >= 0) {
    projection = [[now.at, now.left], [end, now.left - rate * (end - now.at)]];
  }
  return {points, even: [[seconds(burn.windowStart), effective], [end, burn.windowEnd ? 0 : effective]],
          projection};
}

export class Teams {
  #parts;
  #charts = new Map();  // budget -> {card, chart, words, numbers}
  #burns = new Map();   // budget -> {answer, error, at}
  #shown = false;

  constructor(parts) {
    this.#parts = parts;
  }

  // `visible`: burn-downs are asked for only while somebody looks.
  show(visible) {
    this.#shown = visible;
    if (!visible || !cluster.known.has('quotas')) return;
    const {teams, groups} = inOrder(cluster.quotas);
    redraw(this.#parts.quotas, [teams, groups], () => (teams.length ? [
      el('p', {class: 'key'}, 'Each bar: ', el('span', {class: 'swatch team-0'}), 'own GPUs in use ',
        el('span', {class: 'swatch team-0 borrowed'}), term('borrowed', MEANINGS.borrowed), ' ',
        el('span', {class: 'swatch lent'}), term('lent', MEANINGS.lent), ' ',
        el('span', {class: 'swatch idle'}), 'idle ',
        el('span', {class: 'nominal-key'}), term('what the team owns', MEANINGS.nominal)),
      el('div', {class: 'cards'}, teams.map(quotaCard)),
      groups.length ? el('details', {class: 'groups-of-teams'},
        el('summary', {'data-key': 'groups'}, `Groups of teams (${groups.length})`),
        el('div', {class: 'cards'}, groups.map(quotaCard))) : null,
      this.#numbers(teams)]
      : emptyState('No team has a quota',
                   'Nobody is limited. An administrator declares teams with GPUQuota objects.')));
    redraw(this.#parts.lending, cluster.quotas, () => lendingFlows(cluster.quotas));
    this.#showBudgets();
  }

  #numbers(teams) {
    const number = (value) => (value === null ? 'no limit' : formatNumber(value));
    const rows = teams.flatMap((quota) => quota.lines.map((line) => [
      quota.name, line.model, number(line.nominalGpus), number(line.usedGpus), number(line.borrowedGpus),
      number(line.lentGpus), number(line.availableGpus)]));
    const right = ['Owned', 'Used', 'Borrowed', 'Lent', 'Can take'].map((title) => [`${title} (GPUs)`, 'number']);
    return el('details', {}, el('summary', {'data-key': 'numbers'}, 'The same as a table'),
              table(['Team', 'Model', ...right], rows));
  }

  #showBudgets() {
    const {budgets} = this.#parts;
    const names = cluster.budgets.map((budget) => budget.name);
    redraw(budgets, names, () => {
      this.#charts.clear();
      if (names.length === 0) {
        return emptyState('No budget is set', 'Teams may use GPUs for as long as they like. An ' +
                          'administrator limits GPU-hours with GPUBudget objects.');
      }
      return el('div', {class: 'stack'}, cluster.budgets.map((budget) => this.#budgetCard(budget)));
    });
    for (const budget of cluster.budgets) this.#updateBudget(budget);
  }

  #budgetCard(budget) {
    const head = el('div', {class: 'card-head'});
    const words = el('p', {});
    const plot = el('div', {class: 'chart', 'aria-hidden': 'true'});
    const numbers = el('details', {}, el('summary', {}, 'The curve as a table'), el('div', {}));
    this.#charts.set(budget.name, {head, words, plot, numbers, chart: burnDownChart(plot), drawn: null});
    return el('section', {class: 'card budget', 'aria-label': `Budget ${budget.name}`},
              head, words, plot, numbers);
  }

  #updateBudget(budget) {
    const card = this.#charts.get(budget.name);
    const known = this.#burns.get(budget.name);
    const burn = known?.answer ?? null;
    const left = Math.max(0, Number(budget.effective) - Number(budget.used));
    const [look, state] = STATES[budget.state] ?? ['', budget.state];
    redraw(card.head, [budget, look], () => [
      el('h3', {}, budget.name),
      el('span', {class: 'quiet-text'}, `for ${budget.quotaRef ?? `namespace ${budget.namespace}`}`),
      el('span', {class: `chip ${look}`}, state),
      el('span', {class: 'hours'}, el('strong', {}, formatNumber(left)),
         ` of ${formatHours(budget.effective)} left`)]);
    const missing = known?.error ? ` The course of the period is not known: ${known.error}.` : '';
    const text = budgetWords(budget, burn) + missing;
    if (card.words.textContent !== text) card.words.textContent = text;
    card.plot.hidden = !burn;
    card.numbers.hidden = !burn;
    if (burn && card.drawn !== burn) {
      card.drawn = burn;
      card.chart.show(burnData(budget, burn));
      const rows = burn.points.map(({at, used}) => [formatMoment(at), formatHours(used),
        formatHours(Math.max(0, Number(burn.effective) - Number(used)))]);
      card.numbers.lastChild.replaceChildren(table(['At', ['Used', 'number'], ['Left', 'number']], rows));
    }
    if (!known || Date.now() - known.at > BURN_DOWN_EVERY_MS) this.#ask(budget.name);
  }

  async #ask(name) {
    const before = this.#burns.get(name);
    this.#burns.set(name, {answer: before?.answer ?? null, error: null, at: Date.now()});
    let found;
    try {
      found = {answer: await readBurnDown(name), error: null};
    } catch (error) {
      found = {answer: null, error: error.message};
    }
    this.#burns.set(name, {...found, at: Date.now()});
    if (this.#shown) this.#showBudgets();
  }
}
