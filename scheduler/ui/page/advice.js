// What the server advises: how to divide the fleet, which MIG layouts to change, which pods to
// restart, which nodes to empty, which work would do with less. The tables of `tranche top --advise`.

import {el, table} from './dom.js';
import {formatClock, formatCount, formatGpus, formatLost, formatMemory, plural} from './format.js';
import {nodeLink, podLinkOf, teamLink} from './links.js';

function rowsTable(titles, rows) {
  return rows.length === 0 ? el('p', {class: 'quiet-text'}, 'None.') : table(titles, rows);
}

// What a group of rows has in common stands in the first.
function grouped(common, rows) {
  return rows.map((row, at) => [...common.map((cell) => (at === 0 ? cell : '')), ...row]);
}

function block(title, ...content) {
  return el('section', {}, el('h3', {}, title), ...content);
}

function notes(texts) {
  return texts.length ? el('ul', {class: 'notes'}, ...texts.map((text) => el('li', {}, text))) : null;
}

function nowOf({now}) {
  const parts = [[now.whole, 'whole'], [now.mig, 'MIG'], [now.timeSliced, 'time-sliced']];
  return parts.filter(([count]) => count > 0)
    .map(([count, name]) => `${formatCount(count)} ${name}`).join(', ') || '–';
}

function useOf(part) {
  if (part.use === 'mig') return `MIG: ${part.geometry}`;
  return part.use === 'timeSliced' ? `time-sliced by ${part.replicas}` : part.use;
}

function splitBlock(split) {
  const rows = split.models.flatMap((model) => {
    const parts = model.parts.map((part) => [formatCount(part.gpus), useOf(part), part.serves]);
    if (model.spare > 0 || parts.length === 0) {
      parts.push([formatCount(model.spare), 'whole', 'spare']);
    }
    return grouped([model.model, formatCount(model.gpus), nowOf(model)], parts);
  });
  const short = split.models.filter((model) => model.shortOf.length)
    .map((model) => `${model.model} is short of ${model.shortOf.join(', ')}`);
  return block('Split of the fleet', split.basis ? el('p', {class: 'quiet-text'}, `By ${split.basis}`) : null,
    rowsTable(['Model', 'GPUs', 'Now', 'Advised', 'As', 'For'], rows), notes([...short, ...split.notes]));
}

function repartitionBlock(plan) {
  const title = 'MIG layouts to change';
  if (!plan) {
    return block(title, el('p', {class: 'quiet-text'}, 'Not looked for: mig of the GPUPolicy is Off.'));
  }
  const rows = plan.nodes.flatMap((node) => node.steps.map((step, at) => [
    at === 0 ? nodeLink(node.node) : '', String(step.gpu), step.from, step.to,
    at === 0 ? node.config : '', at === 0 ? node.guards.join('; ') || 'none' : '']));
  const gain = `Serves ${formatCount(plan.waitingServed)} waiting pods and ` +
    `${formatGpus(plan.expectedMilli)} GPUs of expected demand.`;
  return block(title, rowsTable(['Node', 'GPU', 'From', 'To', 'Config', 'Guards'], rows),
    rows.length ? el('p', {}, gain) : null, notes(plan.notes));
}

function defragmentBlock(advice) {
  const rows = advice.entries.flatMap((entry) => {
    const frees = entry.profile ? `${entry.profile} on GPU ${entry.profileGpu}`
      : `GPU ${entry.gpus.join(', ')}`;
    return grouped([nodeLink(entry.node), frees, `${formatCount(entry.waitingServed)} waiting`],
      entry.moves.map((move) => [formatLost(move.lostGpuSeconds), podLinkOf(move.pod, {full: true}),
                                 teamLink(move.leaf), nodeLink(move.to)]));
  });
  return block('Pods whose restart would free room',
    el('p', {class: 'quiet-text'}, `${formatCount(advice.wholeGpusFree)} whole GPUs are free, ` +
      `${formatCount(advice.wholeGpusPossible)} would be. Nobody is restarted for it.`),
    rowsTable(['Node', 'Frees', 'Serves', 'Lost', 'Restart', 'Quota', 'To'], rows), notes(advice.notes));
}

function consolidationBlock(nodes) {
  const rows = nodes.flatMap((node) => grouped([nodeLink(node.node), formatCount(node.gpus)],
    node.moves.map((move) => [formatLost(move.lostGpuSeconds), podLinkOf(move.pod, {full: true}),
                              teamLink(move.leaf), nodeLink(move.to)])));
  return block('Nodes that could be empty',
    el('p', {class: 'quiet-text'}, 'What little they run may be moved, and has room elsewhere. With consolidate: On ' +
      'of the GPUPolicy it is moved.'),
    rowsTable(['Node', 'GPUs', 'Lost', 'Move', 'Quota', 'To'], rows));
}

function rightSizeBlock(advice) {
  const title = 'Work that would do with less';
  if (!advice) {
    return block(title, el('p', {class: 'quiet-text'},
      'Not looked for: nobody is asked how much GPUs are used (use.prometheus of the configuration).'));
  }
  const rows = advice.entries.map((entry) => [
    podLinkOf(entry.pod, {full: true}), teamLink(entry.leaf), entry.holds, `${entry.busiestHourPercent} %`,
    entry.memoryMiB === null ? '–' : formatMemory(entry.memoryMiB), formatCount(entry.hours), entry.wouldDo,
    formatGpus(entry.savedMilli), el('code', {}, `${entry.request.key}: ${entry.request.value}`)]);
  const saved = rows.length ? ` Together they would leave ${formatGpus(advice.savedMilli)} GPUs to others.` : '';
  return block(title,
    el('p', {class: 'quiet-text'}, 'By its busiest hour and the most memory it ever held, with a margin. ' +
      `${formatCount(advice.measured)} of ${plural(advice.measuring, 'pod')} that are measured were measured for a day.${saved}`),
    rowsTable(['Pod', 'Quota', 'Holds', 'Busiest hour', 'Memory', 'Hours', 'Would do', 'Saves GPUs', 'Ask for'], rows),
    notes(advice.notes));
}

export class Advice {
  #root;
  #signature = '';
  #at = null;  // when the server last answered

  constructor(root) {
    this.#root = root;
  }

  show(advice) {
    const {at, ...content} = advice;
    this.#at = new Date();
    this.#root.querySelector('.stale')?.remove();
    const signature = JSON.stringify(content);
    if (signature === this.#signature) return;
    this.#signature = signature;
    this.#root.replaceChildren(splitBlock(advice.split), repartitionBlock(advice.repartition),
                               defragmentBlock(advice.defragment), consolidationBlock(advice.consolidate),
                               rightSizeBlock(advice.rightSizes));
  }

  fail(error) {
    const text = this.#at ? `As of ${formatClock(this.#at)}: ${error.message}.` : `No advice: ${error.message}.`;
    const note = el('p', {class: 'stale', role: 'status'}, text);
    if (!this.#at) {
      this.#root.replaceChildren(note);
      return;
    }
    this.#root.querySelector('.stale')?.remove();
    this.#root.prepend(note);
  }
}
