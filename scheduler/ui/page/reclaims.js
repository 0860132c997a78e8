// GPUs taken back in the last day: for whom, by which rule, who gave way and what was lost.

import {changeQuery, reclaimHref} from './address.js';
import {button, el, emptyState, redraw, table, term} from './dom.js';
import {formatCount, formatLost, formatMoment, formatSpan} from './format.js';
import {nodeLink, podLinkOf, teamLink} from './links.js';
import {cluster} from './store.js';
import {ruleMeaning} from './whatif.js';

const PHASES = {
  Planned: ['warn', 'planned', 'It is decided who gives way; nobody was told yet.'],
  Evicting: ['warn', 'making room', 'Pods were told to stop and are ending.'],
  Reserved: ['warn', 'room is kept', 'The GPUs are free and kept for the pod they are for.'],
  Done: ['good', 'done', 'The pod it was for has its GPUs.'],
  Aborted: ['bad', 'given up', 'It was not carried out to the end.'],
};

const lostOf = (reclaim) => reclaim.victims.reduce((sum, victim) => sum + victim.lostGpuSeconds, 0);

function forWhom({for: whom}) {
  return whom.namespace ? podLinkOf(`${whom.namespace}/${whom.name}`, {full: true}) : `${whom.kind} ${whom.name}`;
}

function stateChip(reclaim) {
  const [look, word, meaning] = PHASES[reclaim.phase] ?? ['', reclaim.phase, ''];
  return el('div', {}, el('span', {class: `chip ${look}`}, term(word, meaning)),
            reclaim.phase === 'Aborted' && reclaim.reason
              ? el('span', {class: 'quiet-text under'}, reclaim.reason) : null);
}

function whyText(reclaim) {
  return el('div', {}, ruleMeaning(reclaim.rule) || reclaim.reason || '–',
            el('span', {class: 'quiet-text under'}, `rule ${reclaim.rule}`));
}

// Who gave way, one a row.
function victimsTable(victims) {
  return table([{title: 'Pod that gave way', look: 'wide'}, 'Team', 'Node', ['Lost', 'number'], 'Last saved', 'Told to stop', 'Gone'],
    victims.map((victim) => [podLinkOf(victim.pod, {full: true}), teamLink(victim.leaf), nodeLink(victim.node),
      formatLost(victim.lostGpuSeconds), victim.lastCheckpoint ? formatMoment(victim.lastCheckpoint) : 'never said',
      formatMoment(victim.evictedAt), formatMoment(victim.goneAt)]), {class: 'victims-table'});
}

// Reclaims in short, for the pages of pods and teams.
export function reclaimRows(reclaims) {
  return table([{title: 'When', look: 'nowrap'}, {title: 'For', look: 'wide'}, {title: 'Why', look: 'wide'}, 'Who gave way',
                ['Work lost', 'number'], 'State'], reclaims.map((reclaim) => [
    el('a', {href: reclaimHref(reclaim.name)}, formatMoment(reclaim.plannedAt)), forWhom(reclaim), whyText(reclaim),
    el('div', {}, reclaim.victims.slice(0, 4).map((victim) => el('div', {}, podLinkOf(victim.pod))),
       reclaim.victims.length > 4 ? `and ${reclaim.victims.length - 4} more` : null),
    formatLost(lostOf(reclaim)), stateChip(reclaim)]));
}

// What was taken for a pod or from it: elements for its page.
export function reclaimsOf(reclaims, name) {
  const concerns = reclaims.filter((reclaim) => `${reclaim.for.namespace}/${reclaim.for.name}` === name ||
    reclaim.victims.some((victim) => victim.pod === name));
  return concerns.length ? [el('section', {class: 'card'}, el('h3', {}, 'Reclaims for it and from it'),
                               reclaimRows(concerns))] : [];
}

export class Reclaims {
  #root;
  #open = new Set();

  constructor(root) {
    this.#root = root;
  }

  setQuery(query) {
    this.#open = new Set((query.get('open') ?? '').split(',').filter(Boolean));
  }

  show(visible) {
    if (visible && cluster.known.has('reclaims')) this.#draw();
  }

  #draw() {
    const list = [...cluster.reclaims].sort((a, b) => (a.plannedAt < b.plannedAt ? 1 : -1));
    redraw(this.#root, [list, [...this.#open], cluster.quotas.length], () => {
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
    const whom = reclaim.for.namespace ? `${reclaim.for.namespace}/${reclaim.for.name}` : reclaim.for.name;
    const opens = button({class: 'opens', 'data-key': reclaim.name, 'aria-expanded': String(open),
                          'aria-label': `Who gave way for ${whom}`}, () => {
      if (!this.#open.delete(reclaim.name)) this.#open.add(reclaim.name);
      changeQuery({open: [...this.#open].join()});
      this.#draw();
    });
    return {
      look: open ? 'open' : null,
      cells: [
        el('div', {class: 'opener'}, opens, el('div', {}, formatMoment(reclaim.plannedAt),
           el('span', {class: 'quiet-text under'}, took))),
        el('div', {}, forWhom(reclaim), el('span', {class: 'quiet-text under'}, reclaim.leaf ? ['team ', teamLink(reclaim.leaf)] : '')),
        whyText(reclaim), victims, formatLost(lostOf(reclaim)), stateChip(reclaim)],
      below: open ? victimsTable(reclaim.victims) : null,
    };
  }
}
