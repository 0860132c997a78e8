// A pod: where it is or why it waits, what it holds, whose it is, and whether it may have to go.

import {readExplanation, readPod} from './api.js';
import {button, el, facts, table} from './dom.js';
import {explanation} from './explanation.js';
import {formatMemory, formatMoment, formatSpan, plural} from './format.js';
import {gangLink, nodeLink, teamLink} from './links.js';
import {Page} from './page.js';
import {isWaiting} from './pod_list.js';
import {reclaimsOf} from './reclaims.js';
import {startSection} from './starts.js';
import {cluster, nodeOf, serverNow, teamOfNamespace} from './store.js';
import {asksText, knowledgeWords, quotaWords, reasonText, stateWords} from './words.js';

async function readAll([namespace, name]) {
  const pod = await readPod(namespace, name);
  if (!isWaiting(pod)) return {pod, found: null};
  // Every node is asked: only for pods that wait.
  try {
    return {pod, found: await readExplanation(namespace, name)};
  } catch (error) {
    return {pod, found: {error: error.message}};
  }
}

function devicesTable(pod) {
  const node = nodeOf(pod.node);
  // Where the position is not known, no GPU of the node can be meant.
  const positionOf = (device) => {
    const at = node?.gpus.findIndex((gpu) => gpu.index === device.index) ?? -1;
    return at < 0 ? null : at;
  };
  // Devices that nobody can tell apart are counted.
  const kinds = new Map();
  for (const device of pod.devices) {
    const key = JSON.stringify(device.index === null ? [device.container, device.milli, device.mib, device.migProfile] : device);
    kinds.set(key, {device, count: (kinds.get(key)?.count ?? 0) + 1});
  }
  const rows = [...kinds.values()].map(({device, count}) => [
    device.index === null ? `${plural(count, 'GPU')}, not known which` : nodeLink(pod.node, positionOf(device), `GPU ${device.index}`),
    device.container,
    device.migProfile ?? (device.milli === 1000 ? 'whole' : device.milli ? `${device.milli / 10} %` : 'memory only'),
    formatMemory(device.mib), device.uuid ? el('span', {class: 'uuid'}, device.uuid) : '–']);
  return table(['GPU', 'Container', ['Share', 'number'], ['Memory', 'number'], 'UUID'], rows, {class: 'devices-table'});
}

function holdsSection(pod) {
  const [knowledge, meaning] = knowledgeWords(pod.knowledge);
  return el('section', {class: 'card'}, el('h3', {}, 'What it holds'),
    pod.devices.length ? devicesTable(pod) : el('p', {}, 'No devices are recorded.'),
    pod.devicesUnknown ? el('p', {class: 'bad'}, 'Which devices it holds cannot be read; all it could hold is kept.') : null,
    pod.reason?.detail ? el('p', {class: 'quiet-text'}, pod.reason.detail) : null,
    knowledge && meaning ? el('p', {class: 'quiet-text'}, meaning) : null);
}

function waitsSection(pod, found, whatIf) {
  return el('section', {class: 'card'}, el('h3', {}, 'Why it waits'),
    el('p', {class: 'verdict after'}, reasonText(pod)),
    explanation(pod, found, button({class: 'primary', 'data-key': 'whatif'}, () => whatIf(pod), 'What if …')));
}

// What an autoscaler was asked for the pod's gang.
function nodesSection({provisioning}) {
  if (!provisioning) return null;
  const {request, text, since} = provisioning;
  return el('section', {class: 'card'}, el('h3', {}, 'Nodes for its gang'),
    el('p', {}, `${text[0].toUpperCase()}${text.slice(1)}.`),
    el('p', {class: 'quiet-text'}, 'ProvisioningRequest ', el('code', {}, request), since ? `, since ${formatMoment(since)}` : ''));
}

function sizeSection({rightSize}) {
  if (!rightSize) return null;
  const {key, value} = rightSize.request;
  return el('section', {class: 'card'}, el('h3', {}, 'Less would do'),
    el('p', {}, `It ${rightSize.text}. Ask for `, el('code', {}, `${key}: ${value}`), '.'));
}

// null: nobody measures it.
function useText(use) {
  if (!use) return null;
  if (!use.idleSince) return `${use.percent} % of the time, of the busiest GPU`;
  return `idle for ${formatSpan(serverNow() - new Date(use.idleSince))}, since ${formatMoment(use.idleSince)}`;
}

function content(pod, found, whatIf) {
  const [look, word, meaning] = stateWords(pod);
  const [quota, standing] = quotaWords(pod.quotaState);
  const {asks} = pod;
  const name = `${pod.namespace}/${pod.name}`;
  return [
    el('p', {class: 'crumbs'}, el('a', {href: '#/pods'}, 'Pods'), ' / ', pod.namespace),
    el('div', {class: 'view-head'}, el('h2', {}, pod.name), el('span', {class: `chip ${look}`, title: meaning}, word)),
    el('div', {class: 'card'}, facts([
      ['Team', teamLink(teamOfNamespace(pod.namespace))],
      ['Node', pod.node && !isWaiting(pod) ? nodeLink(pod.node) : null],
      ['GPU model', isWaiting(pod) ? null : nodeOf(pod.node)?.model],
      ['Asks for', asks ? asksText(asks) : null],
      ['Waits', pod.waitsSince ? `${formatSpan(serverNow() - new Date(pod.waitsSince))}, since ${formatMoment(pod.waitsSince)}` : null],
      ['Gang', pod.gang ? [gangLink(pod.namespace, pod.gang), asks?.gangSize ? `, ${plural(asks.gangSize, 'pod')}` : ''] : null],
      ['Runs for', asks?.expectedRuntimeSeconds ? formatSpan(asks.expectedRuntimeSeconds * 1000) : null],
      ['Quota', pod.quotaState ? `${quota}: ${standing}` : null],
      ['GPU use', useText(pod.use)],
      ['Class', pod.class], ['Priority class', pod.priorityClass],
      ['Observed', pod.observed ? `a quota would have refused it: ${pod.observed}` : null],
      ['UID', el('span', {class: 'uuid'}, pod.uid)]])),
    isWaiting(pod) ? startSection(pod) : null,
    isWaiting(pod) ? waitsSection(pod, found, whatIf) : holdsSection(pod),
    nodesSection(pod),
    sizeSection(pod),
    ...reclaimsOf(cluster.reclaims, name),
  ];
}

// `whatIf(pod)` opens the dialog.
export function podPage(root, whatIf) {
  return new Page(root, {
    ask: readAll,
    content: ({pod, found}) => content(pod, found, whatIf),
    absent: ([namespace, name]) => [`No pod ${namespace}/${name} is known`,
      'It has ended, was deleted, asks for no GPU, or never was. The ledger keeps what it used.'],
  });
}
