// A team: what it owns, who runs and waits, what it may have to give back, budgets, GPU-hours.

import {readLedger, readPods, readTeam} from './api.js';
import {el, table} from './dom.js';
import {Budgets} from './budgets.js';
import {formatHours, formatMoment, formatNumber, formatSpan, gpuCount, plural} from './format.js';
import {asksCell, nodeLink, podLink, swatch, teamLink} from './links.js';
import {Page} from './page.js';
import {heldMilli} from './pod_list.js';
import {heldText} from './pods.js';
import {reclaimRows} from './reclaims.js';
import {startCell} from './starts.js';
import {cluster, serverNow} from './store.js';
import {quotaKey, quotaLines} from './teams.js';
import {lineWord, quotaWords, reasonText} from './words.js';

const MOST_ROWS = 50;
const DAYS = 7;

async function readUse(name) {
  const from = new Date(serverNow() - DAYS * 86400000);
  try {
    return await readLedger({from: from.toISOString(), leaf: name});
  } catch (error) {
    return {error};
  }
}

async function readAll([name]) {
  const team = await readTeam(name);
  const [runs, waits, use] = await Promise.all([
    readPods({team: name, state: 'placed', sort: '-gpus', limit: MOST_ROWS}),
    readPods({team: name, state: 'waiting', sort: 'waitsSince', limit: MOST_ROWS}), readUse(name)]);
  return {team, runs, waits, use};
}

const podCell = (pod) => el('div', {}, podLink(pod.namespace, pod.name, {'data-key': `pod ${pod.namespace}/${pod.name}`}),
                            el('span', {class: 'quiet-text under'}, pod.namespace));

function section(title, note, ...more) {
  return el('section', {class: 'card'}, el('div', {class: 'card-head'}, el('h3', {}, title),
            note ? el('span', {class: 'quiet-text'}, note) : null), ...more);
}

function allLink(name, state, list) {
  return list.total > list.pods.length ? el('p', {}, el('a',
    {href: `#/pods?team=${encodeURIComponent(name)}&state=${state}`}, `All ${plural(list.total, 'pod')}`)) : null;
}

function runsSection(name, runs) {
  return section('Runs', plural(runs.total, 'pod'),
    runs.pods.length ? table([{title: 'Pod', look: 'wide'}, 'Holds', 'Node', 'Class', 'Quota'], runs.pods.map((pod) => [
      podCell(pod), heldText(pod), nodeLink(pod.node), pod.class ?? '–', quotaWords(pod.quotaState)[0]]))
      : el('p', {class: 'quiet-text'}, 'Nothing runs.'), allLink(name, 'placed', runs));
}

function waitsSection(name, waits) {
  return section('Waits', plural(waits.total, 'pod'),
    waits.pods.length ? table([{title: 'Pod', look: 'wide'}, 'Asks for', {title: 'Waits', look: 'nowrap'},
                               'Expected start', {title: 'Why', look: 'wide'}],
      waits.pods.map((pod) => [podCell(pod), asksCell(pod),
        pod.waitsSince ? formatSpan(serverNow() - new Date(pod.waitsSince)) : '–', startCell(pod), reasonText(pod)]))
      : el('p', {class: 'quiet-text'}, 'Nothing waits.'), allLink(name, 'waiting', waits));
}

// Who waits for data for a while is not worth a word.
const IDLE_MATTERS = 10 * 60_000;

// Of what runs, what does nothing with its GPUs, where the server is told how much they are used.
function idleSection(name, runs) {
  const idle = runs.pods.filter((pod) => pod.use?.idleSince && serverNow() - new Date(pod.use.idleSince) >= IDLE_MATTERS)
    .sort((one, other) => one.use.idleSince.localeCompare(other.use.idleSince));
  if (idle.length === 0) return null;
  const milli = idle.reduce((sum, pod) => sum + heldMilli(pod), 0);
  return section('Does nothing', '',
    el('p', {}, `${plural(idle.length, 'pod')} ${idle.length === 1 ? 'leaves' : 'leave'} ${gpuCount(milli)} unused: `,
      idle.slice(0, 8).flatMap((pod, at) => [at ? ', ' : '', podLink(pod.namespace, pod.name),
        ` for ${formatSpan(serverNow() - new Date(pod.use.idleSince))}`]),
      idle.length > 8 ? ` and ${idle.length - 8} more` : '', '. ',
      el('a', {href: `#/pods?team=${encodeURIComponent(name)}&sort=idle&cols=name,gpus,node,class,idle`}, 'All by time')));
}

// Of what runs, what others may take back, as far as the list goes.
function riskSection(name, runs, budgets) {
  const risky = runs.pods.filter((pod) => pod.quotaState === 'borrowed' || pod.quotaState === 'scavenging');
  const milli = risky.reduce((sum, pod) => sum + heldMilli(pod), 0);
  const ends = budgets.map((budget) => budget.exhaustsAt).filter(Boolean).sort()[0];
  if (risky.length === 0 && !ends) return null;
  return section('At risk', '',
    risky.length ? el('p', {}, `${plural(risky.length, 'pod')} with ${gpuCount(milli)} ` +
      `${risky.length === 1 ? 'runs' : 'run'} on what other teams own, and may be stopped as soon as these need it: `,
      risky.slice(0, 8).flatMap((pod, at) => [at ? ', ' : '', podLink(pod.namespace, pod.name)]),
      risky.length > 8 ? ', …' : '', '.') : null,
    ends ? el('p', {}, `At the present rate a budget is used up ${formatMoment(ends)}, ` +
      `in ${formatSpan(new Date(ends) - serverNow())}.`) : null);
}

function useSection(use) {
  if (use.error) {
    const none = use.error.status === 404;
    return section('GPU-hours of the last 7 days', '', el('p', {class: none ? 'quiet-text' : 'bad'},
      none ? 'This server keeps no ledger.' : `Not known: ${use.error.message}.`));
  }
  return section('GPU-hours of the last 7 days', formatHours(use.total),
    use.rows.length ? table(['Model', ['Used', 'number']], use.rows.map((row) => [lineWord(row), formatHours(row.gpuHours)]))
      : el('p', {class: 'quiet-text'}, 'None.'));
}

function ownsSection(team) {
  const idle = team.lines.map((line) => Math.max(0, (line.nominalGpus ?? 0) -
    Math.max(0, line.usedGpus - line.borrowedGpus) - line.lentGpus)).reduce((sum, gpus) => sum + gpus, 0);
  const note = idle > 0 ? `${formatNumber(idle)} of its own GPUs are idle` : '';
  return section('What it owns and uses', note, quotaKey(), quotaLines(team),
    team.namespaces.length ? el('p', {class: 'quiet-text small'}, `Namespaces: ${team.namespaces.join(', ')}`) : null);
}

function content({team, runs, waits, use}) {
  const inner = cluster.quotas.filter((quota) => quota.parent === team.name).map((quota) => quota.name);
  return [
    el('p', {class: 'crumbs'}, el('a', {href: '#/teams'}, 'Teams'), team.parent ? [' / ', teamLink(team.parent)] : ''),
    el('div', {class: 'view-head'}, el('h2', {}, swatch(team.name), team.name),
       team.mode === 'Enforce' ? null : el('span', {class: 'chip warn'}, team.mode),
       team.suspended ? el('span', {class: 'chip bad'}, 'budget used up') : null),
    inner.length ? el('p', {class: 'teams'}, 'Its teams: ', inner.map((name) => teamLink(name))) : null,
    ownsSection(team),
    riskSection(team.name, runs, team.budgets),
    idleSection(team.name, runs),
    inner.length ? null : waitsSection(team.name, waits),
    inner.length ? null : runsSection(team.name, runs),
    useSection(use),
    team.reclaims.length ? section('Reclaims of the last day', plural(team.reclaims.length, 'time'),
      reclaimRows(team.reclaims)) : null,
  ];
}

export class TeamPage {
  #page;
  #budgets;

  constructor(root, budgets) {
    this.#page = new Page(root, {
      ask: readAll,
      content,
      absent: ([name]) => [`No team ${name} is known`, 'Teams are declared with GPUQuota objects.'],
    });
    this.#budgets = new Budgets(budgets);
  }

  show(names, query, palette) {
    const team = names ? cluster.quotas.find((quota) => quota.name === names[0]) : null;
    this.#page.show(names, query, palette);
    const own = names ? cluster.budgets.filter((budget) => budget.quotaRef === names[0] ||
      team?.namespaces.includes(budget.namespace)) : [];
    this.#budgets.show(names !== null && own.length > 0, own);
  }
}
