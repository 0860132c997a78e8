// GPUs taken back in the last day: for whom, by which rule, who gave way and what was lost.

import {button, el, emptyState, redraw, term} from './dom.js';
import {formatCount, formatLost, formatMoment, formatSpan} from './format.js';
import {cluster, teamOfPod} from './store.js';
import {colourClass} from './colours.js';
import {ruleMeaning} from './whatif.js';

const PHASES = {
  Planned: ['warn', 'planned', 'It is decided who gives way; nobody was told yet.'],
  Evicting: ['warn', 'making room', 'Pods were told to stop and are ending.'],
  Reserved: ['warn', 'room is kept', 'The GPUs are free and kept for the pod they are for.'],
  Done: ['good', 'done', 'The pod it was for has its GPUs.'],
  Aborted: ['bad', 'given up', 'It was not carried out to the end.'],
};

const lostOf = (reclaim) => reclaim.victims.reduce((sum, victim) => sum + victim.lostGpuSeconds, 0);

export class Reclaims {
  #root;
  #open = new Set();

  constructor(root) {
    this.#root = root;
  }

  show(visible) {
    if (visible && cluster.known.has('reclaims')) this.#draw();
  }

  #draw() {
    const list = [...cluster.reclaims].sort((a, b) => (a.plannedAt < b.plannedAt ? 1 : -1));
    redraw(this.#root, [list, [...this.#open]], () => {
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
        el('div', {class: 'table-box card'}, el('table', {class: 'reclaim-table'},
          el('thead', {}, el('tr', {}, ['When', 'For', 'Why', 'Who gave way', ['Work lost', 'number'], 'State']
            .map((title) => (Array.isArray(title) ? el('th', {scope: 'col', class: title[1]}, title[0])
              : el('th', {scope: 'col'}, title))))),
          el('tbody', {}, list.flatMap((reclaim) => this.#rows(reclaim)))))];
    });
  }

  #rows(reclaim) {
    const open = this.#open.has(reclaim.name);
    const [look, word, meaning] = PHASES[reclaim.phase] ?? ['', reclaim.phase, ''];
    const whom = reclaim.for.namespace ? `${reclaim.for.namespace}/${reclaim.for.name}`
      : `${reclaim.for.kind} ${reclaim.for.name}`;
    const took = reclaim.finishedAt
      ? `took ${formatSpan(new Date(reclaim.finishedAt) - new Date(reclaim.plannedAt))}` : reclaim.progress;
    const victims = reclaim.victims.length === 1 ? reclaim.victims[0].pod : `${reclaim.victims.length} pods`;
    const row = el('tr', {class: open ? 'open' : null},
      el('td', {class: 'nowrap'}, formatMoment(reclaim.plannedAt), el('span', {class: 'quiet-text under'}, took)),
      el('td', {}, button({class: 'opens', 'data-key': reclaim.name, 'aria-expanded': String(open)}, () => {
        if (!this.#open.delete(reclaim.name)) this.#open.add(reclaim.name);
        this.#draw();
      }, whom), el('span', {class: 'quiet-text under'},
                   reclaim.leaf ? `team ${reclaim.leaf}` : '')),
      el('td', {}, ruleMeaning(reclaim.rule) || reclaim.reason || '–',
         el('span', {class: 'quiet-text under'}, `rule ${reclaim.rule}`)),
      el('td', {}, victims),
      el('td', {class: 'number'}, formatLost(lostOf(reclaim))),
      el('td', {}, el('span', {class: `chip ${look}`}, term(word, meaning)),
         reclaim.phase === 'Aborted' && reclaim.reason
           ? el('span', {class: 'quiet-text under'}, reclaim.reason) : null));
    if (!open) return [row];
    const detail = el('table', {}, el('thead', {}, el('tr', {},
      ['Pod that gave way', 'Team', 'Node', ['Lost', 'number'], 'Last saved', 'Told to stop', 'Gone']
        .map((title) => (Array.isArray(title) ? el('th', {scope: 'col', class: title[1]}, title[0])
          : el('th', {scope: 'col'}, title))))),
      el('tbody', {}, reclaim.victims.map((victim) => el('tr', {},
        el('td', {}, victim.pod),
        el('td', {}, el('span', {class: `swatch ${colourClass(victim.leaf ?? teamOfPod(victim.pod))}`}),
           victim.leaf ?? '–'),
        el('td', {}, victim.node ?? '–'), el('td', {class: 'number'}, formatLost(victim.lostGpuSeconds)),
        el('td', {}, victim.lastCheckpoint ? formatMoment(victim.lastCheckpoint) : 'never said'),
        el('td', {}, formatMoment(victim.evictedAt)), el('td', {}, formatMoment(victim.goneAt))))));
    return [row, el('tr', {class: 'detail'}, el('td', {colspan: 6}, detail))];
  }
}
