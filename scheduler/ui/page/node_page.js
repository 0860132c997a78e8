// A node: its GPUs, who is on them, and whether it takes work.

import {nodeHref} from './address.js';
import {readNode} from './api.js';
import {colourClass} from './colours.js';
import {el, facts, table} from './dom.js';
import {formatGpus, formatMemory, plural} from './format.js';
import {podLinkOf, swatch, teamLink} from './links.js';
import {isClosed, nodeSums, podsOfInstance, segmentsOf, takenShare} from './model.js';
import {Page} from './page.js';
import {teamOfPod} from './store.js';
import {closedText, knowledgeWords} from './words.js';

function useBar(node, gpu) {
  const bar = el('span', {class: 'use-bar', 'aria-hidden': 'true'});
  for (const segment of segmentsOf(gpu, node.model)) {
    const part = el('span', {class: `use-part ${segment.pods.length ? colourClass(teamOfPod(segment.pods[0])) : 'slot'}`});
    part.style.left = `${segment.from * 100}%`;
    part.style.width = `${segment.size * 100}%`;
    bar.append(part);
  }
  return bar;
}

function holders(gpu) {
  const line = (pod, share) => el('li', {}, swatch(teamOfPod(pod)), podLinkOf(pod, {full: true}),
                                  el('span', {class: 'quiet-text'}, ` ${share}`));
  const lines = gpu.mig
    ? gpu.mig.flatMap((instance) => {
      const pods = podsOfInstance(instance);
      return pods.length ? pods.map((pod) => line(pod, instance.profile))
        : [el('li', {class: 'quiet-text'}, `free: ${instance.profile}`)];
    })
    : gpu.pods.map(({pod, milli, mib}) => line(pod, shareWords(milli, mib)));
  return lines.length ? el('ul', {class: 'holders'}, lines) : el('span', {class: 'quiet-text'}, 'nobody');
}

function shareWords(milli, mib) {
  if (milli === 1000) return 'all';
  return milli ? `${milli / 10} %, ${formatMemory(mib)}` : formatMemory(mib);
}

// "41 % busy, 60 GiB, 63 °C, 402 W", of what is told.
function measuredWords(reading) {
  if (!reading) return '–';
  const {percent, memoryMiB, celsius, watts} = reading;
  const parts = [percent === null ? null : `${percent} % busy`, memoryMiB === null ? null : formatMemory(memoryMiB),
                 celsius === null ? null : `${celsius} °C`, watts === null ? null : `${watts} W`];
  return parts.filter(Boolean).join(', ') || '–';
}

function gpuRow(node, gpu, at, chosen, measured) {
  const known = gpu.index !== null && gpu.index !== undefined;
  const taken = Math.round(takenShare(gpu) * 100);
  return {
    look: chosen ? 'open' : null,
    cells: [
      el('a', {href: nodeHref(node.name, at), 'aria-current': chosen ? 'true' : null, 'data-key': `gpu ${at}`},
         known ? `GPU ${gpu.index}` : `GPU, ${at + 1} of ${node.gpus.length}`),
      el('div', {class: 'use-cell'}, useBar(node, gpu), el('span', {}, `${taken} %`)),
      holders(gpu),
      gpu.mig ? 'cut into slices' : `${gpu.freeMilli / 10} %, ${formatMemory(gpu.freeMiB)}`,
      ...measured ? [measuredWords(gpu.reading)] : [],
      gpu.healthy ? el('span', {class: 'state good'}, 'healthy') : el('span', {class: 'state bad'}, 'unhealthy'),
      gpu.numa ?? '–', gpu.uuid ? el('span', {class: 'uuid'}, gpu.uuid) : '–'],
  };
}

function content(node, query) {
  const [knowledge, meaning] = knowledgeWords(node.knowledge);
  const sums = nodeSums(node);
  const teams = [...new Set(sums.pods.map(teamOfPod))].sort();
  const chosen = query.has('gpu') ? Number(query.get('gpu')) : -1;
  const memory = node.gpus[0]?.memoryMiB;
  const replicas = Math.max(1, ...node.gpus.map((gpu) => gpu.replicas));
  const measured = node.gpus.some((gpu) => gpu.reading);
  return [
    el('p', {class: 'crumbs'}, el('a', {href: '#/fleet'}, 'Fleet'), ' / node'),
    el('div', {class: 'view-head'}, el('h2', {}, node.name),
       isClosed(node) ? el('span', {class: 'chip bad'}, 'closed') : el('span', {class: 'chip good'}, 'ready')),
    isClosed(node) ? el('p', {class: 'bad'}, `Takes no new GPU pods: ${closedText(node)}` +
                        `${node.closed?.detail ? ` (${node.closed.detail})` : ''}.`) : null,
    el('div', {class: 'card'}, facts([
      ['GPUs', node.gpus.length ? `${node.gpus.length} × ${node.model || 'unknown model'}, ${formatMemory(memory)} each` : 'none seen'],
      ['In use', `${formatGpus(Math.round(sums.taken * 1000))} of ${plural(node.gpus.length, 'GPU')}`],
      ['Pods', plural(sums.pods.length, 'pod')],
      ['Teams', teams.length ? el('span', {class: 'teams'}, teams.map((team) => teamLink(team))) : null],
      ['Links', node.nvlink ? `${node.nvlink.text}${node.nvlink.verified ? '' : ' (by its type, not seen on the node)'}` : 'not known'],
      ['Time-shared', replicas > 1 ? `each GPU by up to ${replicas} pods` : null],
      ['Zone', node.zone], ['Rack', node.rack], ['NVLink domain', node.nvlinkDomain], ['GPUs of pods', knowledge]]),
      el('p', {class: 'quiet-text small'}, meaning)),
    node.problems?.length ? el('section', {class: 'card'}, el('h3', {}, 'Problems'),
      el('ul', {class: 'notes'}, node.problems.map((problem) => el('li', {}, problem)))) : null,
    node.gpus.length ? el('section', {class: 'card'}, el('h3', {}, 'GPUs'),
      table(['GPU', 'In use', {title: 'Pods', look: 'wide'}, 'Free', ...measured ? ['Measured'] : [], 'Health', 'NUMA', 'UUID'],
            node.gpus.map((gpu, at) => gpuRow(node, gpu, at, at === chosen, measured)), {class: 'gpus-table'})) : null,
  ];
}

export function nodePage(root) {
  return new Page(root, {
    ask: ([name]) => readNode(name),
    content: (node, names, query) => content(node, query),
    absent: ([name]) => [`No node ${name} is known`, 'It left the cluster, or never was part of it.'],
  });
}
