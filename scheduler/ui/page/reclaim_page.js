// A reclaim: for whom GPUs were taken back, by which rule, and what became of each pod that gave way.

import {readReclaim} from './api.js';
import {el, facts, table, term} from './dom.js';
import {formatClock, formatLost, formatMoment, formatSpan, plural} from './format.js';
import {gangLink, nodeLink, podLinkOf, splitName, teamLink} from './links.js';
import {Page} from './page.js';
import {forWhom, lostOf} from './reclaims.js';
import {serverNow} from './store.js';
import {endingText, phaseWords, quotaWords, ruleMeaning} from './words.js';

const clock = (text) => (text ? formatClock(new Date(text)) : '–');
const spanBetween = (from, to) => formatSpan(new Date(to) - new Date(from));

// [look, word] of what became of a victim.
function outcomeOf({gone, goneAt, evictedAt}, finished) {
  if (gone) return ['', evictedAt ? `gone after ${spanBetween(evictedAt, goneAt)}` : 'gone'];
  if (finished) return ['good', 'stayed'];
  return evictedAt ? ['warn', `ending for ${formatSpan(serverNow() - new Date(evictedAt))}`] : ['', 'not told yet'];
}

function victimRow(victim, finished) {
  const [look, word] = outcomeOf(victim, finished);
  const [standing, meaning] = quotaWords(victim.state);
  return [
    el('div', {}, podLinkOf(victim.pod, {full: true}), victim.gang ? el('span', {class: 'quiet-text under'}, 'gang ',
      gangLink(splitName(victim.pod)[0], victim.gang)) : null),
    teamLink(victim.leaf), nodeLink(victim.node), term(standing, `It ran ${meaning}.`),
    el('span', {class: `chip ${look}`}, word), clock(victim.evictedAt), clock(victim.goneAt),
    formatLost(victim.lostGpuSeconds), victim.lastCheckpoint ? formatMoment(victim.lastCheckpoint) : 'never said'];
}

function victimsCard({victims, finishedAt, progress}) {
  return el('section', {class: 'card'},
    el('div', {class: 'card-head'}, el('h3', {}, 'Who gave way'), el('span', {class: 'quiet-text'}, progress)),
    table([{title: 'Pod', look: 'wide'}, 'Team', 'Node', 'Ran on', 'Outcome', {title: 'Told to stop', look: 'nowrap'},
           {title: 'Gone', look: 'nowrap'}, ['Work lost', 'number'], 'Last saved'],
          victims.map((victim) => victimRow(victim, Boolean(finishedAt))), {class: 'victims-table'}));
}

const placeText = ({placed}, finishedAt) => (placed ? 'has its place' : finishedAt ? 'did not get it' : 'waits for it');

// More than one: a gang.
function membersCard({members, finishedAt}) {
  return el('section', {class: 'card'}, el('h3', {}, 'For whom'),
    table([{title: 'Pod', look: 'wide'}, 'Room on', 'Now'], members.map((member) => [
      podLinkOf(member.pod, {full: true}), nodeLink(member.node), placeText(member, finishedAt)])));
}

function content(reclaim) {
  const [look, word, meaning] = phaseWords(reclaim.phase);
  const {members, plannedAt, reservedAt, finishedAt} = reclaim;
  const nodes = [...new Set(members.map(({node}) => node).filter(Boolean))];
  return [
    el('p', {class: 'crumbs'}, el('a', {href: '#/reclaims'}, 'Reclaims'), ' / reclaim'),
    el('div', {class: 'view-head'}, el('h2', {}, reclaim.name), el('span', {class: `chip ${look}`}, word)),
    el('p', {}, reclaim.reason ? `${meaning} Why: ${endingText(reclaim.reason)}.` : meaning),
    el('div', {class: 'card'}, facts([
      ['For', members.length === 1 ? [forWhom(reclaim), `, ${placeText(members[0], finishedAt)}`] : forWhom(reclaim)],
      ['Team', reclaim.leaf ? teamLink(reclaim.leaf) : null],
      ['Why', `${ruleMeaning(reclaim.rule) || 'a rule that this page does not know'} (rule ${reclaim.rule})`],
      ['Room on', nodes.length ? el('span', {class: 'teams'}, nodes.map((node) => nodeLink(node))) : null],
      ['Decided', formatMoment(plannedAt)],
      ['Room was free', reservedAt ? `after ${spanBetween(plannedAt, reservedAt)}` : null],
      ['Ended', finishedAt ? `after ${spanBetween(plannedAt, finishedAt)}`
        : `not yet, it goes on for ${formatSpan(serverNow() - new Date(plannedAt))}`],
      ['Work lost', `${formatLost(lostOf(reclaim))} of ${plural(reclaim.victims.length, 'pod')}`],
      ['Choice of pods', reclaim.search.result === 'optimal' ? 'the least costly there was'
        : 'a good one; a less costly one may exist']])),
    victimsCard(reclaim),
    members.length > 1 ? membersCard(reclaim) : null,
  ];
}

export function reclaimPage(root) {
  return new Page(root, {
    ask: ([name]) => readReclaim(name),
    content,
    absent: ([name]) => [`No reclaim ${name} is known`, 'It ended more than a day ago, or never was.'],
  });
}
