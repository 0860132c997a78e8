// GPUs taken back in the last day: for whom, by which rule, who gave way and what was lost. Also the parts of which
// the page of one reclaim is made.

import {changeQuery, reclaimHref} from './address.js';
import {button, el, emptyState, redraw, table, term} from './dom.js';
import {formatCount, formatLost, formatMoment, formatSpan} from './format.js';
import {gangLink, nodeLink, podLinkOf, teamLink} from './links.js';
import {cluster} from './store.js';
import {endingText, phaseWords, ruleMeaning} from './words.js';

export const lostOf = (reclaim) => reclaim.victims.reduce((sum, victim) => sum + victim.lostGpuSeconds, 0);

// A pod; or what has its own work end: a gang, a team's quota, a budget, a class, a pool of nodes.
export function forWhom({for: whom}) {
  const {kind, namespace, name} = whom;
  if (!kind) return podLinkOf(`${namespace}/${name}`, {full: true});
  if (kind === 'Gang') return el('span', {}, 'gang ', gangLink(namespace, name));
  return kind === 'GPUQuota' ? el('span', {}, 'team ', teamLink(name)) : `${kind} ${name}`;
}

export function stateChip(reclaim) {
  const [look, word, meaning] = phaseWords(reclaim.phase);
  return el('div', {}, el('span', {class: `chip ${look}`}, term(word, meaning)),
            reclaim.phase === 'Aborted' && reclaim.reason
              ? el('span', {class: 'quiet-text under'}, endingText(reclaim.reason)) : null);
}

export function whyText(reclaim) {
  return el('div', {}, ruleMeaning(reclaim.rule) || '–',
            el('span', {class: 'quiet-text under'}, `rule ${reclaim.rule}`));
}

// Who gave way, one a row.
function victimsTable(victims) {
  return table([{title: 'Pod that gave way', look: 'wide'}, 'Team', 'Node', ['Lost', 'number'], 'Last saved', 'Told to stop', 'Gone'],
    victims.map((victim) => [podLinkOf(victim.pod, {full: true}), teamLink(victim.leaf), nodeLink(victim.node),
      formatLost(victim.lostGpuSeconds), victim.lastCheckpoint ? formatMoment(victim.lastCheckpoint) : 'never said',
      formatMoment(victim.evictedAt), formatMoment(victim.goneAt)]), {class: 'victims-table'});
}

const reclaimLink = ({name, plannedAt}) => el('a', {href: reclaimHref(name), 'data-key': `reclaim ${name}`},
  formatMoment(plannedAt));

// Reclaims in short, for the pages of pods, gangs and teams.
export function reclaimRows(reclaims) {
  return table([{title: 'When', look: 'nowrap'}, {title: 'For', look: 'wide'}, {title: 'Why', look: 'wide'}, 'Who gave way',
                ['Work lost', 'number'], 'State'], reclaims.map((reclaim) => [
    reclaimLink(reclaim), forWhom(reclaim), whyText(reclaim),
    el('div', {}, reclaim.victims.slice(0, 4).map((victim) => el('div', {}, podLinkOf(victim.pod))),
       reclaim.victims.length > 4 ? `and ${reclaim.victims.length - 4} more` : null),
    formatLost(lostOf(reclaim)), stateChip(reclaim)]));
}

// What was taken for something or from it, newest first: elements for its page.
export function reclaimsCard(concerns) {
  const sorted = [...concerns].sort((a, b) => (a.plannedAt < b.plannedAt ? 1 : -1));
  return sorted.length ? [el('section', {class: 'card'}, el('h3', {}, 'Reclaims for it and from it'),
                             reclaimRows(sorted))] : [];
}

// The same of the pod 'ns/name'.
export function reclaimsOf(reclaims, name) {
  return reclaimsCard(reclaims.filter(({members, victims}) => [...members, ...victims].some(({pod}) => pod === name)));
}

export class Reclaims {
  #root;
  #open = new Set();
  #palette = '';

  constructor(root) {
    this.#root = root;
  }

  setQuery(query) {
    this.#open = new Set((query.get('open') ?? '').split(',').filter(Boolean));
  }

  // `palette`: changes when colours do.
  show(visible, palette) {
    this.#palette = palette;
    if (visible && cluster.known.has('reclaims')) this.#draw();
  }

  #draw() {
    const list = [...cluster.reclaims].sort((a, b) => (a.plannedAt < b.plannedAt ? 1 : -1));
    redraw(this.#root, [list, [...this.#open], this.#palette, cluster.quotas.length], () => {
      if (list.length === 0) {
        return emptyState('Nothing was taken back in the last day',
          'When a team needs GPUs it has lent, or more important work needs room, that shows here.');
      }
      const gone = list.flatMap((reclaim) => reclaim.victims.filter((victim) => victim.gone));
      const lost = gone.reduce((sum, victim) => sum + victim.lostGpuSeconds, 0);
      const fact = (name, value) => el('div', {}, el('dt', {}, name), el('dd', {}, el('strong', {}, value)));
      return [
        el('dl', {class: 'facts'}, fact('Times in the last day', formatCount(list.length)),
           fact('Under way', formatCount(list.filter((reclaim) => !reclaim.finishedAt).length)),
           fact('Pods that gave way', formatCount(gone.length)), fact('Work lost', formatLost(lost))),
        el('div', {class: 'card'}, table([{title: 'When', look: 'nowrap'}, {title: 'For', look: 'wide'}, {title: 'Why', look: 'wide'},
          'Who gave way', ['Work lost', 'number'], 'State'], list.map((reclaim) => this.#row(reclaim)), {class: 'reclaim-table'}))];
    });
  }

  #row(reclaim) {
    const open = this.#open.has(reclaim.name);
    const took = reclaim.finishedAt
      ? `took ${formatSpan(new Date(reclaim.finishedAt) - new Date(reclaim.plannedAt))}` : reclaim.progress;
    const victims = reclaim.victims.length === 1 ? podLinkOf(reclaim.victims[0].pod, {full: true})
      : `${reclaim.victims.length} pods`;
    const whom = [reclaim.for.namespace, reclaim.for.name].filter(Boolean).join('/');
    const opens = button({class: 'opens', 'data-key': reclaim.name, 'aria-expanded': String(open),
                          'aria-label': `Who gave way for ${whom}`}, () => {
      if (!this.#open.delete(reclaim.name)) this.#open.add(reclaim.name);
      changeQuery({open: [...this.#open].join()});
      this.#draw();
    });
    return {
      look: open ? 'open' : null,
      cells: [
        el('div', {class: 'opener'}, opens, el('div', {}, reclaimLink(reclaim),
           el('span', {class: 'quiet-text under'}, took))),
        el('div', {}, forWhom(reclaim), el('span', {class: 'quiet-text under'}, reclaim.leaf ? ['team ', teamLink(reclaim.leaf)] : '')),
        whyText(reclaim), victims, formatLost(lostOf(reclaim)), stateChip(reclaim)],
      below: open ? victimsTable(reclaim.victims) : null,
    };
  }
}
