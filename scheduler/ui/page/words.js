// What the API's words mean to people. No document, no network.

export function reasonText(pod) {
  if (pod.reason) return pod.reason.text || pod.reason.code;
  return pod.state === 'claimed' ? 'a place is picked, it starts in a moment' : 'not tried yet';
}

// "4 GPUs, h100", "50 % of 1 GPU", "2 × 1g.10gb"
export function asksText(asks) {
  if (!asks) return 'devices by resource claim';
  const parts = asks.devices.map((device) => {
    const one = device.count === 1;
    if (device.kind === 'gpu') return `${device.count} GPU${one ? '' : 's'}`;
    if (device.kind === 'shared') return one ? '1 shared GPU' : `${device.count} shared GPUs`;
    if (device.kind === 'mig') return one ? `1 ${device.profile} slice` : `${device.count} ${device.profile} slices`;
    const shares = [];
    if (device.milli) shares.push(`${device.milli / 10} %`);
    if (device.mib) shares.push(`${device.mib} MiB`);
    const share = shares.join(' and ') || 'a part';
    return `${share} of ${device.count} GPU${one ? '' : 's'}`;
  });
  const text = parts.join(' + ') || 'an invalid request';
  return asks.models.length ? `${text}, ${asks.models.join(' or ')}` : text;
}

// [look, word, meaning] of a pod's state.
const STATES = {
  pending: ['warn', 'waiting', 'It has no place yet.'],
  claimed: ['warn', 'starting', 'A place is picked; it starts in a moment.'],
  reserved: ['good', 'starting', 'Its GPUs are kept for it; it is being bound to the node.'],
  bound: ['good', 'running', 'It holds its GPUs.'],
};
export const stateWords = (pod) => STATES[pod.state] ?? ['', pod.state, ''];

const QUOTA_STATES = {
  'in-quota': ['own', 'within the team’s own quota'],
  borrowed: ['borrowed', 'on borrowed GPUs: may have to give them back'],
  scavenging: ['leftovers', 'on leftovers: gives way to everybody'],
};
export const quotaWords = (state) => QUOTA_STATES[state] ?? ['–', ''];

const KNOWLEDGE = {
  exact: ['exact', 'The node gives a pod the very GPU that is shown.'],
  predicted: ['predicted', 'Which GPU a pod has follows from the rule of the node’s device plugin.'],
  counts: ['count only', 'Only how many GPUs are used is known: the device plugin of the node picks ' +
    'which, and tells nobody.'],
};
export const knowledgeWords = (knowledge) => KNOWLEDGE[knowledge] ?? [knowledge, ''];

export const closedText = (node) => node.closed?.text || node.closed?.code || 'not ready';
