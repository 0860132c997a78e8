// Wires the page: poll, filters, and who draws what.

import {Advice} from './advice.js';
import {ADVICE_PERIOD_MS, CLUSTER_PERIOD_MS, poll, readAdvice, readCluster, readExplanation}
  from './api.js';
import {assignColours, colourClass} from './colours.js';
import {el, formatCount, formatGpus} from './dom.js';
import {Fleet} from './fleet.js';
import {filterNodes, modelsOf, summarise, teamsOf} from './model.js';
import {Tooltip} from './tooltip.js';
import {WaitingPods} from './waiting.js';

const byId = (id) => document.getElementById(id);

const inputs = {
  team: byId('filter-team'), model: byId('filter-model'),
  node: byId('filter-node'), room: byId('filter-room'),
};
const fleet = new Fleet(byId('fleet'), new Tooltip(byId('tip')));
const waiting = new WaitingPods({
  count: byId('waiting-count'), empty: byId('waiting-empty'), reasons: byId('waiting-reasons'),
  table: byId('waiting-table'), rows: byId('waiting-rows'), pages: byId('waiting-pages'),
}, readExplanation);
const advice = new Advice(byId('advice'));

let cluster = null;
let lastContact = null;

function filters() {
  return {team: inputs.team.value, model: inputs.model.value,
          node: inputs.node.value, room: inputs.room.checked};
}

// Filters live in the address, so that a view can be shared.
const wanted = new URLSearchParams(location.hash.slice(1));

function readAddress() {
  inputs.node.value = wanted.get('node') ?? '';
  inputs.room.checked = wanted.get('room') === '1';
}

function writeAddress() {
  const now = filters();
  const parts = new URLSearchParams();
  for (const key of ['team', 'model', 'node']) if (now[key]) parts.set(key, now[key]);
  if (now.room) parts.set('room', '1');
  const text = parts.toString();
  history.replaceState(null, '', text ? `#${text}` : location.pathname);
}

function fillSelect(select, values) {
  const chosen = select.value || wanted.get(select.name) || '';
  wanted.delete(select.name);
  const all = chosen && !values.includes(chosen) ? [...values, chosen] : values;
  const key = JSON.stringify(all);
  if (select.dataset.values !== key) {
    select.dataset.values = key;
    select.replaceChildren(el('option', {value: ''}, 'all'),
                           ...all.map((value) => el('option', {value}, value)));
  }
  select.value = chosen;
}

function drawSummary() {
  const sum = summarise(cluster);
  const share = sum.gpus ? Math.round(100 * sum.taken / sum.gpus) : 0;
  const meter = el('meter', {min: 0, max: 100, value: share, 'aria-label': 'allocated'});
  const entry = (name, value, note, extra, alarming) => el('div', {class: alarming ? 'alarm' : ''},
    el('dt', {}, name),
    el('dd', {}, el('strong', {}, value), note ? el('small', {}, ` ${note}`) : null, extra));
  byId('summary').replaceChildren(
    entry('GPUs', formatCount(sum.gpus), `on ${formatCount(sum.nodes)} nodes`),
    entry('Allocated', `${share} %`, `${formatGpus(Math.round(sum.taken * 1000))} GPUs`, meter),
    entry('Pods placed', formatCount(sum.placed)),
    entry('Pods waiting', formatCount(sum.waiting)),
    entry('Nodes closed', formatCount(sum.closed), '', null, sum.closed > 0),
    entry('GPUs unhealthy', formatCount(sum.unhealthy), '', null, sum.unhealthy > 0));
  document.title = `Tranche: ${share} % of ${formatCount(sum.gpus)} GPUs`;
}

function drawLegend(teams) {
  const chosen = inputs.team.value;
  const key = JSON.stringify([teams, chosen]);
  const legend = byId('legend');
  if (legend.dataset.key === key) return;
  legend.dataset.key = key;
  const focus = document.activeElement?.dataset?.team;
  const items = teams.map((team) => {
    const button = el('button', {type: 'button', 'data-team': team},
                      el('span', {class: `swatch ${colourClass(team)}`}), team);
    button.setAttribute('aria-pressed', String(team === chosen));
    button.addEventListener('click', () => {
      inputs.team.value = inputs.team.value === team ? '' : team;
      onFilter();
    });
    return el('li', {}, button);
  });
  const mark = (look, text) => el('li', {class: 'mark-entry'},
                                  el('span', {class: `swatch ${look}`}), text);
  legend.replaceChildren(...items, mark('free', 'free'), mark('slot', 'free MIG instance'),
                         mark('ill', 'unhealthy'));
  if (focus) legend.querySelector(`[data-team="${CSS.escape(focus)}"]`)?.focus();
}

function draw() {
  const teams = teamsOf(cluster);
  assignColours(teams);
  fillSelect(inputs.team, teams);
  fillSelect(inputs.model, modelsOf(cluster));
  const now = filters();
  const nodes = filterNodes(cluster.nodes, now);
  drawSummary();
  drawLegend(teams);
  byId('shown').textContent =
    `${formatCount(nodes.length)} of ${formatCount(cluster.nodes.length)} nodes`;
  const empty = byId('fleet-empty');
  empty.hidden = nodes.length > 0;
  empty.textContent = cluster.nodes.length ? 'No node matches the filters.'
                                           : 'The cluster has no nodes yet.';
  fleet.show(nodes, now.team);
  waiting.show(cluster.pods, now.team);
}

function onFilter() {
  writeAddress();
  if (cluster) draw();
}

function onData(data) {
  cluster = data;
  lastContact = new Date();
  const contact = byId('contact');
  if (contact.dataset.state !== 'live') {
    contact.dataset.state = 'live';
    contact.textContent = 'Live';
  }
  draw();
}

function onError(error) {
  const contact = byId('contact');
  contact.dataset.state = 'lost';
  const since = lastContact ? `showing ${lastContact.toLocaleTimeString()}` : 'no data yet';
  contact.textContent = `No answer (${since})`;
  contact.title = error.message;
}

readAddress();
byId('filters').addEventListener('input', onFilter);
byId('filters').addEventListener('submit', (event) => event.preventDefault());
poll(readCluster, CLUSTER_PERIOD_MS, onData, onError);
poll(readAdvice, ADVICE_PERIOD_MS, (answer) => advice.show(answer), (error) => advice.fail(error));
