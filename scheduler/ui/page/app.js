// Wires the page: views and their addresses, theme, token, and who draws when what has changed.

import {Advice} from './advice.js';
import {readAdvice, setToken} from './api.js';
import {redrawCharts} from './charts.js';
import {assignColours} from './colours.js';
import {byId} from './dom.js';
import {formatCount, plural} from './format.js';
import {FleetView} from './fleet_view.js';
import {Ledger} from './ledger.js';
import {Queue} from './queue.js';
import {Reclaims} from './reclaims.js';
import {cluster, refresh, start, teams} from './store.js';
import {Teams} from './teams.js';
import {Tooltip} from './tooltip.js';
import {WhatIf} from './whatif.js';

const ADVICE_PERIOD_MS = 30000;
const VIEWS = ['fleet', 'teams', 'queue', 'reclaims', 'ledger', 'advice'];

const tip = new Tooltip(byId('tip'));
const fleet = new FleetView(tip, (filters) => writeAddress(filters));
const quotas = new Teams({
  quotas: byId('team-quotas'), lending: byId('team-lending'), budgets: byId('team-budgets'),
});
const whatIf = new WhatIf(byId('whatif'));
const queue = new Queue({
  reasons: byId('queue-reasons'), table: byId('queue-table'), team: byId('queue-team'), tryPod: byId('try-pod'),
}, (pod) => whatIf.open(pod));
const reclaims = new Reclaims(byId('reclaims'));
const ledger = new Ledger({
  form: byId('ledger-form'), from: byId('ledger-from'), to: byId('ledger-to'), presets: byId('ledger-presets'),
  csv: byId('ledger-csv'), body: byId('ledger-body'),
});
const advice = new Advice(byId('advice'));

let view = '';
let adviceAsked = 0;
let lastContact = null;

// ---- addresses: #/VIEW, of the fleet #/fleet?team=a&room=1, so that a view can be shared

function readAddress() {
  const [name, query] = location.hash.slice(2).split('?');
  return {name: VIEWS.includes(name) ? name : 'fleet', query: new URLSearchParams(query ?? '')};
}

function writeAddress(filters) {
  const text = new URLSearchParams(filters).toString();
  history.replaceState(null, '', `#/fleet${text ? `?${text}` : ''}`);
}

function showView(moveFocus) {
  const {name, query} = readAddress();
  const changed = name !== view;
  view = name;
  for (const one of VIEWS) byId(`view-${one}`).hidden = one !== name;
  for (const link of byId('tabs').children) {
    const current = link.hash === `#/${name}`;
    if (current) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  if (name === 'fleet') fleet.setFilters(query);
  tip.hide();
  draw();
  if (changed && moveFocus) {
    window.scrollTo(0, 0);
    byId('main').focus({preventScroll: true});
  }
}

// ---- theme

function applyTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
  fleet.recolour();
  redrawCharts();
}

function watchTheme() {
  const select = byId('theme');
  select.value = localStorage.getItem('theme') ?? '';
  select.addEventListener('change', () => {
    localStorage.setItem('theme', select.value);
    applyTheme(select.value);
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => applyTheme(select.value));
  applyTheme(select.value);
}

// ---- drawing

function drawHead() {
  const count = byId('queue-count');
  count.hidden = cluster.waiting.length === 0;
  count.textContent = formatCount(cluster.waiting.length);
  count.setAttribute('aria-label', `${plural(cluster.waiting.length, 'pod')} waiting`);
}

async function drawAdvice() {
  if (view !== 'advice' || Date.now() - adviceAsked < ADVICE_PERIOD_MS) return;
  adviceAsked = Date.now();
  try {
    advice.show(await readAdvice());
  } catch (error) {
    advice.fail(error);
  }
}

function draw() {
  const known = teams();
  assignColours(known);
  drawHead();
  fleet.show(view === 'fleet', known);
  quotas.show(view === 'teams');
  queue.show(view === 'queue', known);
  reclaims.show(view === 'reclaims');
  ledger.show(view === 'ledger');
  drawAdvice();
}

const WANTED = {
  nodes: ['fleet'], pods: ['fleet', 'queue'], quotas: ['fleet', 'teams', 'queue'], budgets: ['teams'],
  reclaims: ['reclaims', 'ledger'],
};

function onChange(source) {
  if (source === 'pods') drawHead();
  if (WANTED[source].includes(view)) draw();
}

// ---- contact with the server

function onContact(problem) {
  const contact = byId('contact');
  byId('sign-in').hidden = problem?.status !== 401;
  byId('main').hidden = problem?.status === 401;
  if (!problem) {
    lastContact = new Date();
    if (contact.dataset.state !== 'live') {
      contact.dataset.state = 'live';
      contact.textContent = 'Live';
      contact.title = 'What is shown is at most a few seconds old.';
      byId('sign-in-problem').textContent = '';
    }
    return;
  }
  const since = lastContact ? `showing ${lastContact.toLocaleTimeString('en-GB')}` : 'no data yet';
  const text = problem.status === 401 ? 'Token needed' : `No answer, ${since}`;
  if (contact.textContent !== text) contact.textContent = text;
  contact.dataset.state = 'lost';
  contact.title = problem.failed;
}

byId('sign-in').addEventListener('submit', (event) => {
  event.preventDefault();
  setToken(byId('token').value);
  byId('token').value = '';
  byId('sign-in-problem').textContent = 'If this stays, the token was not right.';
  refresh();
});
byId('skip').addEventListener('click', (event) => {
  event.preventDefault();
  byId('main').focus();
});

window.addEventListener('hashchange', () => showView(true));
// Ages, the ledger and advice move without news from the cluster.
setInterval(() => {
  if (!document.hidden) draw();
}, 10000);
watchTheme();
showView(false);
start(onChange, onContact);
