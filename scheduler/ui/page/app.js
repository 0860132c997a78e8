// Wires the page: views and their addresses, theme, token, and who draws when what has changed.

import {Advice} from './advice.js';
import {readAddress} from './address.js';
import {readAdvice, setNamespace, setToken} from './api.js';
import {redrawCharts} from './charts.js';
import {assignColours} from './colours.js';
import {byId} from './dom.js';
import {Events} from './events.js';
import {formatClock, formatCount, plural, zoneName} from './format.js';
import {FleetView} from './fleet_view.js';
import {Ledger} from './ledger.js';
import {gangPage} from './gang_page.js';
import {Gangs} from './gangs.js';
import {nodePage} from './node_page.js';
import {podPage} from './pod_page.js';
import {Pods} from './pods.js';
import {Queue} from './queue.js';
import {reclaimPage} from './reclaim_page.js';
import {Reclaims} from './reclaims.js';
import {cluster, lastAnswer, ownersVersion, refresh, start, teams, teamsBySize, want} from './store.js';
import {TeamPage} from './team_page.js';
import {Teams} from './teams.js';
import {Then} from './then.js';
import {Tooltip} from './tooltip.js';
import {WhatIf} from './whatif.js';

const ADVICE_PERIOD_MS = 30000;

const tip = new Tooltip(byId('tip'));
const fleet = new FleetView(tip);
const quotas = new Teams({
  quotas: byId('team-quotas'), lending: byId('team-lending'), budgets: byId('team-budgets'),
});
const whatIf = new WhatIf(byId('whatif'));
const pods = new Pods({
  form: byId('pod-filters'), text: byId('pod-text'), team: byId('pod-team'), state: byId('pod-state'),
  quota: byId('pod-quota'), columns: byId('pod-columns'), shown: byId('pods-shown'), table: byId('pods-table'),
});
const queue = new Queue({
  reasons: byId('queue-reasons'), table: byId('queue-table'), team: byId('queue-team'), text: byId('queue-text'),
  tryPod: byId('try-pod'),
}, (pod) => whatIf.open(pod));
const gangs = new Gangs({
  form: byId('gang-filters'), text: byId('gang-text'), team: byId('gang-team'), state: byId('gang-state'),
  shown: byId('gangs-shown'), table: byId('gangs-table'),
});
const reclaims = new Reclaims(byId('reclaims'));
const events = new Events({
  form: byId('event-filters'), text: byId('event-text'), team: byId('event-team'), kind: byId('event-kind'),
  shown: byId('events-shown'), table: byId('events-table'),
});
const ledger = new Ledger({
  form: byId('ledger-form'), from: byId('ledger-from'), to: byId('ledger-to'), presets: byId('ledger-presets'),
  csv: byId('ledger-csv'), body: byId('ledger-body'),
});
const past = new Then({
  form: byId('then-form'), at: byId('then-at'), now: byId('then-now'), slider: byId('then-slider'), from: byId('then-from'),
  to: byId('then-to'), shown: byId('then-shown'), find: byId('then-find'), body: byId('then-body'),
});
const advice = new Advice(byId('advice'));
const pages = {
  pod: podPage(byId('pod-page'), (pod) => whatIf.open(pod)),
  gang: gangPage(byId('gang-page')),
  node: nodePage(byId('node-page')),
  reclaim: reclaimPage(byId('reclaim-page')),
  team: new TeamPage(byId('team-page'), byId('team-page-budgets')),
};
const ledgerView = {
  setQuery(query) {
    ledger.setQuery(query);
    past.setQuery(query);
  },
};
const withQuery = {fleet, pods, queue, gangs, reclaims, events, ledger: ledgerView};

// What each view draws from, and so needs every few seconds.
const SOURCES = {
  fleet: ['nodes', 'pods', 'quotas'], pods: ['pods', 'quotas'], queue: ['pods', 'quotas'],
  gangs: ['quotas'], teams: ['quotas', 'budgets'], reclaims: ['reclaims'], events: ['quotas'], ledger: [], advice: [],
  pod: ['reclaims'], gang: [], node: [], team: ['quotas', 'budgets'], reclaim: [],
};

let address = {view: '', tab: '', names: [], query: new URLSearchParams()};
let adviceAsked = 0;
let colourings = 0;  // how often colours changed

// ---- addresses

function showView(moveFocus) {
  const before = address;
  address = readAddress();
  const changed = address.view !== before.view || address.names.join('/') !== before.names.join('/');
  for (const section of document.querySelectorAll('main > .view')) {
    section.hidden = section.id !== `view-${address.view}`;
  }
  for (const link of byId('tabs').children) {
    const current = link.hash === `#/${address.tab}`;
    if (current) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  if (changed) showTab();
  withQuery[address.view]?.setQuery(address.query);
  tip.hide();
  want(SOURCES[address.view]);
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

// On phones the tabs scroll.
function showTab() {
  byId('tabs').querySelector('[aria-current]')?.scrollIntoView({block: 'nearest', inline: 'center'});
}

function drawHead() {
  const count = byId('queue-count');
  const wider = count.hidden !== (cluster.waiting.length === 0);
  count.hidden = cluster.waiting.length === 0;
  count.textContent = formatCount(cluster.waiting.length);
  count.setAttribute('aria-label', `${plural(cluster.waiting.length, 'pod')} waiting`);
  if (wider) showTab();
}

async function drawAdvice() {
  if (address.view !== 'advice' || Date.now() - adviceAsked < ADVICE_PERIOD_MS) return;
  adviceAsked = Date.now();
  try {
    advice.show(await readAdvice());
  } catch (error) {
    advice.fail(error);
  }
}

function titleOf({names, tab}) {
  if (names.length) return `${names.join('/')} · Tranche`;
  const title = byId(`${tab}-title`)?.textContent;
  return title ? `${title} · Tranche` : 'Tranche';
}

function draw() {
  const {view, names, query} = address;
  const known = teams();
  const largest = teamsBySize();
  if (assignColours(largest)) {
    colourings += 1;
    fleet.recolour();
  }
  // Changes when colours do, or who owns what.
  const palette = `${colourings} ${ownersVersion()}`;
  // Pages lead to GPUs by their place on a node, and to reclaims: what was drawn before these came is drawn again.
  const background = `${palette} ${cluster.known.has('nodes')} ${cluster.known.has('reclaims')}`;
  if (view !== 'fleet') document.title = titleOf(address);
  drawHead();
  fleet.show(view === 'fleet', known, largest, palette);
  pods.show(view === 'pods', known);
  queue.show(view === 'queue', known);
  quotas.show(view === 'teams', palette);
  gangs.show(view === 'gangs', known, palette);
  reclaims.show(view === 'reclaims', palette);
  events.show(view === 'events', known, palette);
  ledger.show(view === 'ledger', palette);
  past.show(view === 'ledger');
  for (const [name, page] of Object.entries(pages)) page.show(name === view ? names : null, query, background);
  drawAdvice();
}

function onChange(source, first) {
  if (source === 'pods') drawHead();
  if (first || SOURCES[address.view].includes(source)) draw();
}

// ---- contact with the server

function troubleWords(all, trouble) {
  const reasons = new Set(trouble.map(([, {why}]) => why));
  if (all && reasons.size === 1) {
    return lastAnswer() ? `All of this is as of ${formatClock(lastAnswer())}: ${[...reasons][0]}.`
      : `Nothing has come yet: ${[...reasons][0]}.`;
  }
  return trouble.map(([source, {why, since}]) => {
    const name = source[0].toUpperCase() + source.slice(1);
    return since ? `${name} are as of ${formatClock(since)}: ${why}.` : `${name} have not come yet: ${why}.`;
  }).join(' ');
}

// Somebody else might get an answer.
const asksWho = (status) => status === 401 || status === 403;

// Whether there is nothing to see without another token.
function drawSignIn(trouble) {
  const asking = trouble.filter(([, {status}]) => asksWho(status)).map(([, why]) => why);
  const locked = asking.length > 0;
  byId('sign-in').hidden = !locked;
  byId('main').hidden = locked;
  const problem = byId('sign-in-problem');
  if (!locked) {
    problem.textContent = '';
    return false;
  }
  const refused = asking.find(({status}) => status === 403);
  const ofCluster = Boolean(refused) || asking.some((why) => why.ofCluster);
  byId('sign-in-own').hidden = ofCluster;
  byId('sign-in-cluster').hidden = !ofCluster;
  byId('sign-in-namespace').hidden = !ofCluster;
  if (refused) problem.textContent = `Not with this token: ${refused.why}.`;
  return true;
}

// One state for all that the view needs: live, or what is old and why.
function onContact() {
  const contact = byId('contact');
  const trouble = [...cluster.trouble].filter(([source, {status}]) =>
    asksWho(status) || SOURCES[address.view].includes(source) || SOURCES[address.view].length === 0);
  const locked = drawSignIn(trouble);
  const stale = byId('stale');
  let state = 'live';
  let text = 'Live';
  let title = 'What is shown is at most a few seconds old.';
  let note = '';
  if (locked) {
    [state, text, title] = ['lost', 'Token needed', 'The server asks who you are.'];
  } else if (trouble.length) {
    const all = trouble.length >= SOURCES[address.view].length;
    const since = lastAnswer() ? `showing ${formatClock(lastAnswer())}` : 'no data yet';
    [state, text] = ['lost', all ? `No answer, ${since}` : 'Partly old'];
    title = trouble[0][1].why;
    note = troubleWords(all, trouble);
  } else if (!lastAnswer()) {
    [state, text, title] = ['', 'Connecting', ''];
  }
  if (contact.dataset.state !== state) contact.dataset.state = state;
  if (contact.textContent !== text) contact.textContent = text;
  if (contact.title !== title) contact.title = title;
  stale.hidden = note === '';
  if (stale.textContent !== note) stale.textContent = note;
}

byId('sign-in').addEventListener('submit', (event) => {
  event.preventDefault();
  setToken(byId('token').value);
  setNamespace(byId('namespace').value);
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
byId('zone').textContent = `Times are ${zoneName()}; days of the ledger are UTC.`;
watchTheme();
start(onChange, onContact);
showView(false);
