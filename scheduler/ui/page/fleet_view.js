// The view of the fleet: sums, filters, legend, the map of all nodes and the cards.

import {colourClass} from './colours.js';
import {button, byId, el, emptyState, redraw} from './dom.js';
import {Fleet} from './fleet.js';
import {formatCount, formatNumber, plural} from './format.js';
import {filterNodes, modelsOf, summarise} from './model.js';
import {Overview} from './overview.js';
import {cluster} from './store.js';

export class FleetView {
  #inputs = {
    team: byId('filter-team'), model: byId('filter-model'),
    node: byId('filter-node'), room: byId('filter-room'), by: byId('overview-by'),
  };
  #fleet;
  #overview;
  #onFilter;
  #wanted = new URLSearchParams();
  #teams = [];
  #visible = false;

  // `onFilter(filters that are set)` after each change by hand.
  constructor(tip, onFilter) {
    this.#onFilter = onFilter;
    this.#fleet = new Fleet(byId('fleet'), tip, (first, last) => this.#overview.setWindow(first, last));
    this.#overview = new Overview(byId('overview'), byId('overview-frame'), tip,
                                  (node) => this.#fleet.reveal(node));
    byId('filters').addEventListener('input', () => this.#changed());
    byId('filters').addEventListener('submit', (event) => event.preventDefault());
    this.#inputs.by.addEventListener('change', () => this.#draw());
  }

  setFilters(query) {
    this.#wanted = query;
    this.#inputs.node.value = query.get('node') ?? '';
    this.#inputs.room.checked = query.get('room') === '1';
    for (const key of ['team', 'model']) this.#inputs[key].value = query.get(key) ?? '';
  }

  recolour() {
    this.#overview.recolour();
  }

  show(visible, teams) {
    this.#visible = visible;
    this.#teams = teams;
    if (visible && cluster.known.has('nodes')) this.#draw();
  }

  #filters() {
    const {team, model, node, room} = this.#inputs;
    return {team: team.value, model: model.value, node: node.value, room: room.checked};
  }

  #changed() {
    const now = this.#filters();
    const set = Object.entries({...now, room: now.room ? '1' : ''}).filter(([, value]) => value);
    this.#onFilter(Object.fromEntries(set));
    this.#draw();
  }

  #fill(key, values) {
    const select = this.#inputs[key];
    const chosen = select.value || this.#wanted.get(key) || '';
    this.#wanted.delete(key);
    const all = chosen && !values.includes(chosen) ? [...values, chosen] : values;
    redraw(select, all, () => [el('option', {value: ''}, 'all'),
                               ...all.map((value) => el('option', {value}, value))]);
    select.value = chosen;
  }

  #draw() {
    if (!this.#visible) return;
    this.#fill('team', this.#teams);
    this.#fill('model', modelsOf(cluster.nodes));
    const now = this.#filters();
    const nodes = filterNodes(cluster.nodes, now);
    this.#drawSummary();
    this.#drawLegend(now.team);
    byId('shown').textContent = `${formatCount(nodes.length)} of ${plural(cluster.nodes.length, 'node')}`;
    redraw(byId('fleet-empty'), [nodes.length > 0, cluster.nodes.length > 0], () => {
      if (nodes.length > 0) return [];
      return cluster.nodes.length ? emptyState('No node matches the filters', 'Try fewer of them.')
        : emptyState('The cluster has no GPU nodes yet', 'Nodes appear here as soon as they report GPUs.');
    });
    byId('overview-card').hidden = nodes.length < 13;
    byId('use-scale').hidden = this.#inputs.by.value !== 'use';
    this.#overview.show(nodes, this.#inputs.by.value);
    this.#fleet.show(nodes, now.team, JSON.stringify(cluster.quotas.map((quota) => quota.namespaces)));
  }

  #drawSummary() {
    const sum = summarise(cluster.nodes);
    const share = sum.gpus ? Math.round(100 * sum.taken / sum.gpus) : 0;
    document.title = `Tranche: ${share} % of ${plural(sum.gpus, 'GPU')}`;
    redraw(byId('summary'), [sum, cluster.placed, cluster.waiting.length], () => {
      const fact = (name, value, note, extra, alarming) => el('div', {class: alarming ? 'alarm' : null},
        el('dt', {}, name), el('dd', {}, el('strong', {}, value), note ? el('small', {}, ` ${note}`) : null, extra));
      return [
        fact('GPUs', formatCount(sum.gpus), `on ${plural(sum.nodes, 'node')}`),
        fact('In use', `${share} %`, `${formatNumber(sum.taken)} GPUs`,
             el('meter', {min: 0, max: 100, value: share, 'aria-label': 'GPUs in use, percent'})),
        fact('Pods placed', formatCount(cluster.placed)),
        fact('Pods waiting', formatCount(cluster.waiting.length)),
        fact('Nodes closed', formatCount(sum.closed), '', null, sum.closed > 0),
        fact('GPUs unhealthy', formatCount(sum.unhealthy), '', null, sum.unhealthy > 0)];
    });
  }

  #drawLegend(chosen) {
    redraw(byId('legend'), [this.#teams, chosen], () => {
      const items = this.#teams.map((team) => el('li', {}, button({
        'data-key': team, 'aria-pressed': String(team === chosen),
      }, () => {
        this.#inputs.team.value = this.#inputs.team.value === team ? '' : team;
        this.#changed();
      }, el('span', {class: `swatch ${colourClass(team)}`}), team)));
      const mark = (look, text) => el('li', {class: 'mark-entry'}, el('span', {class: `swatch ${look}`}), text);
      return [...items, mark('free', 'free'), mark('slot', 'free MIG slice'), mark('ill', 'unhealthy'),
              el('li', {class: 'mark-entry'}, el('span', {class: 'bracket-key'}), 'joined by NVLink')];
    });
  }
}
