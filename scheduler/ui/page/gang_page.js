// A gang: pods that start all or none. How far it is, why it waits, its pods, and what was taken for it or from it.

import {readGang, readPods, readReclaims} from './api.js';
import {el, facts, table} from './dom.js';
import {formatMoment, formatSpan, plural} from './format.js';
import {nodeLink, podLink, splitName, teamLink} from './links.js';
import {Page} from './page.js';
import {isWaiting} from './pod_list.js';
import {heldText} from './pods.js';
import {reclaimsCard} from './reclaims.js';
import {lastToStart, startCell, startText} from './starts.js';
import {serverNow, teamOfNamespace} from './store.js';
import {asksText, gangWords, reasonText, stateWords} from './words.js';

const MOST_ROWS = 100;

async function readAll([namespace, name]) {
  const [gang, {pods}, reclaims] = await Promise.all([
    readGang(namespace, name), readPods({namespace, gang: name}), readReclaims()]);
  // Those that have a place first.
  const members = [...pods.filter((pod) => !isWaiting(pod)), ...pods.filter(isWaiting)];
  return {gang, members, reclaims: reclaims.filter((reclaim) => concerns(reclaim, gang, members))};
}

function concerns({for: whom, members, victims}, {namespace, name}, pods) {
  const within = ({pod, gang}) => gang === name && splitName(pod)[0] === namespace;
  return (whom.kind === 'Gang' && whom.namespace === namespace && whom.name === name) || victims.some(within) ||
    members.some(({pod}) => pods.some((member) => `${member.namespace}/${member.name}` === pod));
}

function countsText({bound, binding, waiting, gated, withoutGpus}) {
  return [[bound, 'running'], [binding, 'starting'], [waiting, 'waiting'], [gated, 'behind a scheduling gate'],
          [withoutGpus, 'without GPUs']].filter(([count]) => count > 0).map(([count, word]) => `${count} ${word}`).join(', ');
}

const COLUMNS = [{title: 'Pod', look: 'wide'}, 'State', 'Node', 'GPUs'];
const OF_WAITING = ['Expected start', {title: 'Why it waits', look: 'wide'}];

function memberRow(pod) {
  const [look, word, meaning] = stateWords(pod);
  const waits = isWaiting(pod);
  return [podLink(pod.namespace, pod.name, {'data-key': `pod ${pod.name}`}),
          el('span', {class: `chip ${look}`, title: meaning}, word), waits ? '–' : nodeLink(pod.node),
          waits ? asksText(pod.asks) : heldText(pod), waits ? startCell(pod) : '–', waits ? reasonText(pod) : '–'];
}

function podsTable(pods) {
  const columns = pods.some(isWaiting) ? [...COLUMNS, ...OF_WAITING] : COLUMNS;
  return [
    table(columns, pods.slice(0, MOST_ROWS).map((pod) => memberRow(pod).slice(0, columns.length))),
    pods.length > MOST_ROWS ? el('p', {class: 'quiet-text'}, `and ${plural(pods.length - MOST_ROWS, 'pod')} more`) : null];
}

function content({gang, members, reclaims}) {
  const [look, word, meaning] = gangWords(gang.state);
  const waits = members.filter(isWaiting);
  const last = waits.length ? lastToStart(waits) : null;
  const waitsNow = gang.waitsSince && gang.state !== 'running';
  return [
    el('p', {class: 'crumbs'}, el('a', {href: '#/gangs'}, 'Gangs'), ` / ${gang.namespace}`),
    el('div', {class: 'view-head'}, el('h2', {}, gang.name), el('span', {class: `chip ${look}`}, word)),
    el('p', {}, meaning),
    el('div', {class: 'card'}, facts([
      ['Team', teamLink(teamOfNamespace(gang.namespace))],
      ['Starts with', gang.size ? `${plural(gang.size, 'pod')} at once` : 'nobody said how many pods'],
      ['Pods now', countsText(gang)],
      ['Waits', waitsNow ? `${formatSpan(serverNow() - new Date(gang.waitsSince))}, since ${formatMoment(gang.waitsSince)}` : null],
      ['Expected start', last ? startText(last) : null],
      ['Nodes', gang.nodes.length ? el('span', {class: 'teams'}, gang.nodes.map((node) => nodeLink(node))) : null]])),
    gang.text ? el('section', {class: 'card'}, el('h3', {}, 'Why it waits'),
      el('p', {}, gang.text),
      last ? el('p', {}, 'What would change it, and what each node answers: ', podLink(last.namespace, last.name), '.') : null) : null,
    members.length ? el('section', {class: 'card'}, el('h3', {}, 'Its pods'), podsTable(members)) : null,
    ...reclaimsCard(reclaims),
  ];
}

export function gangPage(root) {
  return new Page(root, {
    ask: readAll,
    content,
    absent: ([namespace, name]) => [`No gang ${namespace}/${name} is known`,
      'All its pods have ended, none of them asks for a GPU, or it never was.'],
  });
}
