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
    readGang(namespace, name), readPods({namespace}), readReclaims()]);
  const waits = pods.filter((pod) => isWaiting(pod) && pod.asks?.gang === name);
  // The server names the gang of pods that wait alone. All others of the gang are on its nodes.
  const there = pods.filter((pod) => !isWaiting(pod) && gang.nodes.includes(pod.node));
  return {gang, waits, there, reclaims: reclaims.filter((reclaim) => concerns(reclaim, gang, waits))};
}

function concerns({for: whom, members, victims}, {namespace, name}, waits) {
  const within = ({pod, gang}) => gang === name && splitName(pod)[0] === namespace;
  return (whom.kind === 'Gang' && whom.namespace === namespace && whom.name === name) || victims.some(within) ||
    members.some(({pod}) => waits.some((member) => `${member.namespace}/${member.name}` === pod));
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

function membersCard({bound, binding}, waits, there) {
  const placed = bound + binding;
  // As many as there are of it: these are the ones.
  const certain = there.length === placed;
  const members = certain ? [...there, ...waits] : waits;
  return [
    members.length ? el('section', {class: 'card'}, el('h3', {}, 'Its pods'), podsTable(members)) : null,
    certain ? null : el('section', {class: 'card'}, el('h3', {}, 'Pods of its namespace on its nodes'),
      el('p', {class: 'quiet-text'}, `${plural(placed, 'pod')} of the gang ${placed === 1 ? 'has' : 'have'} a place. ` +
        'The server does not tell which of these they are.'), podsTable(there))];
}

function content({gang, waits, there, reclaims}) {
  const [look, word, meaning] = gangWords(gang.state);
  const last = waits.length ? lastToStart(waits) : null;
  const waitsNow = gang.waitsSince && gang.state !== 'running';
  return [
    el('p', {class: 'crumbs'}, el('a', {href: '#/pods'}, 'Pods'), ` / ${gang.namespace} / gang`),
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
    ...membersCard(gang, waits, there),
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
