// Which pods a list shows, and in which order. No document, no network: the worker does this for all
// pods, the page for those that wait.

import {keyOfSort, sortedBy} from './order.js';
import {reasonText} from './words.js';

export const isWaiting = (pod) => pod.state === 'pending' || pod.state === 'claimed';

// Thousandths of GPUs a pod holds.
export function heldMilli(pod) {
  return (pod.devices ?? []).reduce((sum, device) => sum + device.milli, 0);
}

// Of a pod that waits, what it asks for.
function askedMilli(pod) {
  return (pod.asks?.devices ?? []).reduce((sum, device) => sum + device.count * (device.milli || 1000), 0);
}

const STATE_ORDER = {pending: 0, claimed: 1, reserved: 2, bound: 3};

const KEYS = {
  name: (pod) => `${pod.namespace}/${pod.name}`,
  team: (pod, owners) => owners.of(pod.namespace),
  state: (pod) => STATE_ORDER[pod.state],
  node: (pod) => pod.node ?? null,
  gpus: (pod) => heldMilli(pod) || askedMilli(pod),
  class: (pod) => pod.class ?? null,
  quota: (pod) => pod.quotaState ?? null,
  waits: (pod) => pod.waitsSince ?? null,
  start: (pod) => pod.forecast?.p50 ?? null,
  idle: (pod) => pod.use?.idleSince ?? null,
  gang: (pod) => pod.gang ?? null,
  reason: (pod) => (isWaiting(pod) ? reasonText(pod) : null),
};
export const sortKeys = Object.keys(KEYS);

function matchesText(pod, words, owners) {
  const text = [pod.namespace, '/', pod.name, ' ', pod.node, ' ', owners.of(pod.namespace), ' ', pod.class, ' ',
                pod.gang, ' ', pod.asks?.models?.join(' ')].join('').toLowerCase();
  return words.every((word) => text.includes(word));
}

// query: {text, team, state: 'waiting' | 'placed' | '', quota, sort: 'gpus' or '-gpus', from, count}.
// Answers {rows, total}: a slice of those that match. Pods, which come in the order of their names, without a
// value for the order come last.
export function selectPods(pods, query, owners) {
  const words = (query.text ?? '').toLowerCase().split(/\s+/).filter(Boolean);
  const matching = pods.filter((pod) =>
    (!query.team || owners.of(pod.namespace) === query.team) &&
    (!query.state || isWaiting(pod) === (query.state === 'waiting')) &&
    (!query.quota || pod.quotaState === query.quota) &&
    (words.length === 0 || matchesText(pod, words, owners)));
  const {key, descending} = keyOfSort(query.sort ?? '');
  const ranked = sortedBy(matching, (pod) => (KEYS[key] ?? KEYS.name)(pod, owners), null, descending);
  const from = query.from ?? 0;
  return {total: ranked.length, rows: ranked.slice(from, from + (query.count ?? ranked.length))};
}
