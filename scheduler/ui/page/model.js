// What the answers mean: shares of a GPU, free capacity, filters, sums. No document, no network.

import {teamOfPod} from './store.js';

// Memory units of a MIG-capable board; instances lie on these.
export function memoryUnits(model, instances) {
  const last = Math.max(0, ...instances.map((instance) => instance.start + instance.size));
  const units = /^a30\b/.test(model) ? 4 : /rtx-?pro-?6000/.test(model) ? 12 : 8;
  return Math.max(units, last);
}

// The part of the GPU that is taken, 0..1: compute or memory, whichever is larger.
export function takenShare(gpu) {
  const compute = 1 - gpu.freeMilli / 1000;
  const memory = gpu.memoryMiB > 0 ? 1 - gpu.freeMiB / gpu.memoryMiB : 0;
  return Math.min(1, Math.max(0, compute, memory));
}

export function podsOfInstance(instance) {
  if (instance.pods?.length) return instance.pods;
  return instance.pod ? [instance.pod] : [];
}

// The drawn parts of a GPU, bottom to top: {from, size} in 0..1 of its height, `pods`, `profile`.
// Parts without pods are free MIG instances; what no part covers is free or has no instance.
export function segmentsOf(gpu, model) {
  if (gpu.mig) {
    const units = memoryUnits(model, gpu.mig);
    return gpu.mig.map((instance) => ({
      from: instance.start / units,
      size: instance.size / units,
      pods: podsOfInstance(instance),
      profile: instance.profile,
    }));
  }
  const parts = gpu.pods.map((pod) => {
    const memory = gpu.memoryMiB > 0 ? pod.mib / gpu.memoryMiB : 0;
    return {pods: [pod.pod], size: Math.max(pod.milli / 1000, memory)};
  });
  // One pod may be large in compute and its neighbour in memory: together more than the cell.
  const sum = parts.reduce((total, part) => total + part.size, 0);
  const scale = sum > 0 ? takenShare(gpu) / sum : 0;
  let from = 0;
  for (const part of parts) {
    part.from = from;
    part.size = Math.max(part.size * scale, 0.03);
    from += part.size;
  }
  return parts;
}

// GPU positions in the order they are drawn: NVLink groups side by side, then the rest. Groups are
// [{from, count}] in that order.
export function drawingOrder(node) {
  // Devices of resource claims stand behind those of which the links are known, or alone.
  const groups = (node.nvlink?.groups ?? []).filter((group) =>
    group.every((at) => at < node.gpus.length));
  const grouped = new Set(groups.flat());
  const rest = node.gpus.map((_, at) => at).filter((at) => !grouped.has(at));
  let from = 0;
  const spans = groups.map((group) => {
    const span = {from, count: group.length};
    from += group.length;
    return span;
  });
  return {order: [...groups.flat(), ...rest], groups: spans};
}

export function isClosed(node) {
  return !node.ready || Boolean(node.closed);
}

export function hasRoom(node) {
  if (isClosed(node)) return false;
  return node.gpus.some((gpu) => gpu.healthy && (gpu.mig
    ? gpu.mig.some((instance) => podsOfInstance(instance).length === 0)
    : takenShare(gpu) < 1));
}

// Sums of one node, kept as long as the node stays the same.
const sums = new WeakMap();
export function nodeSums(node) {
  let known = sums.get(node);
  if (known) return known;
  known = {gpus: node.gpus.length, taken: 0, unhealthy: 0, pods: []};
  const pods = new Set();
  for (const gpu of node.gpus) {
    known.taken += takenShare(gpu);
    if (!gpu.healthy) known.unhealthy += 1;
    for (const pod of gpu.pods) pods.add(pod.pod);
    for (const instance of gpu.mig ?? []) {
      for (const pod of podsOfInstance(instance)) pods.add(pod);
    }
  }
  known.pods = [...pods];
  sums.set(node, known);
  return known;
}

export function modelsOf(nodes) {
  return [...new Set(nodes.map((node) => node.model).filter(Boolean))].sort();
}

// Nodes that match, by name. Nodes without a GPU are never shown, unless they are closed: then
// their GPUs may only be missing.
export function filterNodes(nodes, filters) {
  const part = filters.node.trim().toLowerCase();
  return nodes.filter((node) =>
    (node.gpus.length > 0 || node.closed) &&
    (!part || node.name.toLowerCase().includes(part)) &&
    (!filters.model || node.model === filters.model) &&
    (!filters.room || hasRoom(node)) &&
    (!filters.team || nodeSums(node).pods.some((pod) => teamOfPod(pod) === filters.team)));
}

export function summarise(nodes) {
  const sum = {nodes: nodes.length, closed: 0, gpus: 0, unhealthy: 0, taken: 0};
  for (const node of nodes) {
    const own = nodeSums(node);
    if (isClosed(node)) sum.closed += 1;
    sum.gpus += own.gpus;
    sum.unhealthy += own.unhealthy;
    sum.taken += own.taken;
  }
  return sum;
}

const ORDERS = {
  fullest: (node) => -nodeSums(node).taken / Math.max(1, nodeSums(node).gpus),
  emptiest: (node) => nodeSums(node).taken - nodeSums(node).gpus,
  unhealthy: (node) => -(2 * nodeSums(node).unhealthy + (isClosed(node) ? 1 : 0) + (node.problems?.length ? 0.5 : 0)),
  // Pods that have a place there and have not come yet.
  awaited: (node, coming) => -(coming.get(node.name) ?? 0),
};
const GROUPS = {
  model: (node) => node.model || 'unknown model',
  state: (node) => (isClosed(node) ? node.closed?.text || 'not ready' : nodeSums(node).unhealthy ? 'with unhealthy GPUs'
    : hasRoom(node) ? 'with room' : 'full'),
  domain: (node) => node.nvlinkDomain || 'no NVLink domain known',
  zone: (node) => node.zone || 'no zone known',
  rack: (node) => node.rack || 'no rack known',
  pool: (node) => node.pool || 'in no pool',
};

// `nodes`, which are sorted by name, in the order and groups that are asked for: {nodes, groups:
// [{label, count, note}]}; without a group there is one, without a label. `waiting`: pods without a node of theirs.
export function arrangeNodes(nodes, group, order, waiting) {
  const rank = ORDERS[order];
  const coming = new Map();
  for (const pod of waiting) if (pod.node) coming.set(pod.node, (coming.get(pod.node) ?? 0) + 1);
  const ordered = rank ? [...nodes].sort((a, b) => rank(a, coming) - rank(b, coming) || (a.name < b.name ? -1 : 1)) : nodes;
  const labelOf = GROUPS[group];
  if (!labelOf) return {nodes: ordered, groups: [{label: '', count: ordered.length, note: ''}]};
  const parts = new Map();
  for (const node of ordered) {
    const label = labelOf(node);
    if (!parts.has(label)) parts.set(label, []);
    parts.get(label).push(node);
  }
  const labels = [...parts.keys()].sort((a, b) => a.localeCompare(b, 'en', {numeric: true}));
  return {nodes: labels.flatMap((label) => parts.get(label)), groups: labels.map((label) => {
    const {gpus, taken} = summarise(parts.get(label));
    return {label, count: parts.get(label).length,
            note: gpus ? `${Math.round(100 * taken / gpus)} % of ${gpus} GPUs in use` : 'no GPUs'};
  })};
}
