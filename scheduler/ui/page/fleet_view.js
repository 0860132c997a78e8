// The view of the fleet: sums, filters, legend, the map of all nodes and the cards.

import {changeQuery} from './address.js';
import {colourClass, isColoured} from './colours.js';
import {button, byId, el, emptyState, redraw} from './dom.js';
import {Fleet} from './fleet.js';
import {formatCount, formatNumber, plural} from './format.js';
import {fillSelect} from './lists.js';
import {arrangeNodes, filterNodes, modelsOf, summarise} from './model.js';
import {Overview} from './overview.js';
import {cluster} from './store.js';

export class FleetView {
  #inputs = {
    team: byId('filter-team'), model: byId('filter-model'),
    node: byId('filter-node'), room: byId('filter-room'), by: byId('overview-by'),
    group: byId('filter-group'), order: byId('filter-order'),
  };
  #fleet;
  #overview;
  #state = {team: '', model: ''};
  #teams = [];
  #largest = [];
  #palette = '';
  #visible = false;

  constructor(tip) {
    this.#fleet = new Fleet(byId('fleet'), tip, (first, last) => this.#overview.setWindow(first, last));
    this.#overview = new Overview(byId('overview'), byId('overview-frame'), tip,
                                  (node) => this.#fleet.reveal(node));
    byId('filters').addEventListener('input', () => this.#changed());
    byId('filters').addEventListener('submit', (event) => event.preventDefault());
    this.#inputs.by.addEventListener('change', () => this.#changed());
  }

  setQuery(query) {
    this.#inputs.node.value = query.get('node') ?? '';
    this.#inputs.room.checked = query.get('room') === '1';
    this.#inputs.by.value = query.get('by') ?? 'team';
    for (const key of ['group', 'order']) this.#inputs[key].value = query.get(key) ?? '';
    // Names that are not known yet.
    this.#state = {team: query.get('team') ?? '', model: query.get('model') ?? ''};
  }

  recolour() {
    this.#overview.recolour();
  }

  // `largest`: teams that have work, largest first. `palette`: changes when colours do.
  show(visible, teams, largest, palette) {
    this.#visible = visible;
    this.#teams = teams;
    this.#largest = largest;
    this.#palette = palette;
    byId('fleet-skeleton').hidden = cluster.known.has('nodes');
    if (visible && cluster.known.has('nodes')) this.#draw();
  }

  #filters() {
    const {node, room} = this.#inputs;
    return {...this.#state, node: node.value, room: room.checked};
  }

  #changed() {
    const {team, model, node, room, by, group, order} = this.#inputs;
    this.#state = {team: team.value, model: model.value};
    changeQuery({...this.#state, node: node.value, room: room.checked ? '1' : '', by: by.value === 'use' ? 'use' : '',
                 group: group.value, order: order.value});
    this.#draw();
  }

  #draw() {
    if (!this.#visible) return;
    fillSelect(this.#inputs.team, 'all', this.#teams, this.#state.team);
    fillSelect(this.#inputs.model, 'all', modelsOf(cluster.nodes), this.#state.model);
    const now = this.#filters();
    const {nodes, groups} = arrangeNodes(filterNodes(cluster.nodes, now), this.#inputs.group.value,
                                         this.#inputs.order.value, cluster.waiting);
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
    this.#fleet.show(nodes, groups, now.team, this.#palette);
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
        fact('Pods placed', el('a', {href: '#/pods?state=placed'}, formatCount(cluster.placed))),
        fact('Pods waiting', el('a', {href: '#/queue'}, formatCount(cluster.waiting.length))),
        fact('Nodes closed', formatCount(sum.closed), '', null, sum.closed > 0),
        fact('GPUs unhealthy', formatCount(sum.unhealthy), '', null, sum.unhealthy > 0)];
    });
  }

  #drawLegend(chosen) {
    const coloured = this.#largest.filter((team) => isColoured(team) && this.#teams.includes(team));
    const grey = this.#teams.filter((team) => !isColoured(team));
    redraw(byId('legend'), [coloured, grey.length, chosen, this.#palette], () => {
      const items = coloured.map((team) => el('li', {}, button({
        'data-key': team, 'aria-pressed': String(team === chosen),
      }, () => {
        this.#inputs.team.value = this.#inputs.team.value === team ? '' : team;
        this.#changed();
      }, el('span', {class: `swatch ${colourClass(team)}`}), team)));
      const mark = (look, text) => el('li', {class: 'mark-entry'}, el('span', {class: `swatch ${look}`}), text);
      const others = grey.length === 0 ? [] : [mark('team-other', grey.length === 1 ? grey[0] : `${formatCount(grey.length)} others`)];
      return [...items, ...others, mark('free', 'free'), mark('slot', 'free MIG slice'), mark('ill', 'unhealthy'),
              el('li', {class: 'mark-entry'}, el('span', {class: 'bracket-key'}), 'joined by NVLink')];
    });
  }
}
