// GPU-hour budgets: what is left, how it went, and whether it lasts.

import {readBurnDown} from './api.js';
import {burnDownChart} from './charts.js';
import {colourClass} from './colours.js';
import {el, emptyState, redraw, table} from './dom.js';
import {formatHours, formatMoment, formatNumber, formatSpan} from './format.js';
import {teamLink} from './links.js';
import {ownersVersion, serverNow} from './store.js';

const BURN_DOWN_EVERY_MS = 30000;

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

export class Budgets {
  #root;
  #list = [];
  #charts = new Map();  // budget -> {head, words, plot, numbers, chart, drawn}
  #burns = new Map();   // budget -> {answer, error, at}
  #shown = false;

  constructor(root) {
    this.#root = root;
  }

  // `visible`: burn-downs are asked for only while somebody looks.
  show(visible, list) {
    this.#shown = visible;
    this.#root.hidden = !visible;
    this.#list = list;
    if (visible) this.#draw();
  }

  #draw() {
    const names = this.#list.map((budget) => budget.name);
    redraw(this.#root, names, () => {
      this.#charts.clear();
      if (names.length === 0) {
        return emptyState('No budget is set', 'Teams may use GPUs for as long as they like. An ' +
                          'administrator limits GPU-hours with GPUBudget objects.');
      }
      return el('div', {class: 'stack'}, this.#list.map((budget) => this.#budgetCard(budget)));
    });
    for (const budget of this.#list) this.#updateBudget(budget);
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
    redraw(card.head, [budget, look, ownersVersion(), colourClass(budget.quotaRef ?? '')], () => [
      el('h3', {}, budget.name),
      el('span', {class: 'quiet-text'}, 'for ', budget.quotaRef ? teamLink(budget.quotaRef) : `namespace ${budget.namespace}`),
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
    if (this.#shown) this.#draw();
  }
}
