// What the answers mean: shares of a GPU, free capacity, filters, sums. No document, no network.

// Memory units of a MIG-capable board; instances lie on these.
export function memoryUnits(model, instances) {
  const last = Math.max(0, ...instances.map((instance) => instance.start + instance.size));
  const units = /^a30\b/.test(model) ? 4 : /rtx-?pro-?6000/.test(model) ? 12 : 8;
  return Math.max(units, last);
}

export function teamOf(pod) {
  return pod.slice(0, pod.indexOf('/'));
}

// The part of the GPU that is taken, 0..1: compute or memory, whichever is larger.
export function takenShare(gpu) {
  const compute = 1 - gpu.freeMilli / 1000;
  const memory = gpu.memoryMiB > 0 ? 1 - gpu.freeMiB / gpu.memoryMiB : 0;
  return Math.min(1, Math.max(0, compute, memory));
}

function podsOfInstance(instance) {
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

export function hasRoom(node) {
  if (!node.ready || node.closed) return false;
  return node.gpus.some((gpu) => gpu.healthy && (gpu.mig
    ? gpu.mig.some((instance) => podsOfInstance(instance).length === 0)
    : takenShare(gpu) < 1));
}

export function teamsOfNode(node) {
  const teams = new Set();
  for (const gpu of node.gpus) {
    for (const pod of gpu.pods) teams.add(teamOf(pod.pod));
    for (const instance of gpu.mig ?? []) {
      for (const pod of podsOfInstance(instance)) teams.add(teamOf(pod));
    }
  }
  return teams;
}

export function isWaiting(pod) {
  return pod.state === 'pending' || pod.state === 'claimed';
}

export function teamsOf(cluster) {
  return [...new Set(cluster.pods.map((pod) => pod.namespace))].sort();
}

export function modelsOf(cluster) {
  return [...new Set(cluster.nodes.map((node) => node.model).filter(Boolean))].sort();
}

// Nodes that match, by name as the server sends them. Nodes without a GPU are never shown, unless
// they are closed: then their GPUs may only be missing.
export function filterNodes(nodes, filters) {
  const part = filters.node.trim().toLowerCase();
  return nodes.filter((node) =>
    (node.gpus.length > 0 || node.closed) &&
    (!part || node.name.toLowerCase().includes(part)) &&
    (!filters.model || node.model === filters.model) &&
    (!filters.room || hasRoom(node)) &&
    (!filters.team || teamsOfNode(node).has(filters.team)));
}

export function summarise(cluster) {
  const sum = {nodes: 0, closed: 0, gpus: 0, unhealthy: 0, taken: 0, placed: 0, waiting: 0};
  for (const node of cluster.nodes) {
    sum.nodes += 1;
    if (!node.ready || node.closed) sum.closed += 1;
    for (const gpu of node.gpus) {
      sum.gpus += 1;
      if (!gpu.healthy) sum.unhealthy += 1;
      sum.taken += takenShare(gpu);
    }
  }
  for (const pod of cluster.pods) {
    if (isWaiting(pod)) sum.waiting += 1;
    else sum.placed += 1;
  }
  return sum;
}

export function reasonText(pod) {
  if (pod.reason) return pod.reason.text || pod.reason.code;
  return pod.state === 'claimed' ? 'a place is picked, the bind is due' : 'not tried yet';
}
