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

// Why pods have to give way, by the rule of a reclaim.
const RULES = {
  R0: 'lower classes that no team is entitled to give way',
  R1: 'the team is within what it owns, so others give back what they borrowed',
  R2a: 'lower classes of the same team give way',
  R2b: 'lower classes of the same team that borrow give way',
  R3: 'lower classes of other teams that borrow give way',
  R5: 'the team that borrows most gives way',
  Drain: 'a budget is used up, and its policy is to end the work',
  Shrink: 'the team owns less than before, and its work has to fit',
  Gang: 'the gang lost more pods than it can spare, so the rest of it goes too',
  MaxRuntime: 'its class lets it run no longer',
  Idle: 'its GPUs did nothing for as long as its class allows',
  Consolidate: 'its node runs little and is emptied, as other nodes have room',
  MigLayout: 'its node is emptied for another MIG layout',
  Maintenance: 'maintenance of its nodes begins',
  Interruption: 'its node is about to be taken away by its cloud',
  Unhealthy: 'a GPU of it has been unhealthy for ten minutes',
};
export const ruleMeaning = (rule) => RULES[rule] ?? '';

// [look, word, meaning] of a reclaim's phase.
const PHASES = {
  Planned: ['warn', 'planned', 'It is decided who gives way; nobody was told yet.'],
  Evicting: ['warn', 'making room', 'Pods were told to stop and are ending.'],
  Reserved: ['warn', 'room is kept', 'The GPUs are free and kept for the pod they are for.'],
  Done: ['good', 'done', 'It was carried out: whoever had to go has gone.'],
  Aborted: ['bad', 'given up', 'It was not carried out to the end.'],
};
export const phaseWords = (phase) => PHASES[phase] ?? ['', phase, ''];

// Why a reclaim was given up.
const ENDINGS = {
  PreemptorGone: 'the pod it was for is gone',
  PlacedElsewhere: 'the pod it was for found another place',
  Changed: 'the cluster changed, and the plan no longer held',
  PDBBlocked: 'a PodDisruptionBudget does not let a pod go',
  Forbidden: 'Tranche is not allowed to evict; an administrator has to change that',
  VictimStuck: 'a pod that was told to stop did not end',
  Unclaimed: 'the pod it was for did not come in time',
};
export const endingText = (reason) => ENDINGS[reason] ?? reason;

// [look, word, meaning] of a gang's state.
const GANG_STATES = {
  gathering: ['warn', 'gathering', 'Pods of it are missing. Nothing of it starts before all are there.'],
  waiting: ['warn', 'waiting', 'It waits until there is room for all of its pods at once.'],
  seated: ['good', 'starting', 'Devices are kept for all of its pods, which start one after another.'],
  running: ['good', 'running', 'It has started.'],
  leaving: ['bad', 'leaving', 'More of its pods are being evicted than it can spare, so the rest goes too.'],
};
export const gangWords = (state) => GANG_STATES[state] ?? ['', state, ''];

// [look, word, meaning] of what happened.
const EVENTS = {
  Placed: ['', 'placed', 'A node and devices were chosen, and the pod goes there.'],
  Running: ['good', 'running', 'Its containers run.'],
  Ended: ['', 'ended', 'It holds no GPU any more.'],
  Undone: ['warn', 'undone', 'It was placed, but that never came true.'],
  Refunded: ['', 'refunded', 'Use was given back to its team.'],
  Reclaim: ['warn', 'reclaim', 'Room is made for it.'],
  EvictionAsked: ['bad', 'evicted', 'The cluster was asked to evict it.'],
  Nominated: ['', 'nominated', 'Room on the node is kept for it.'],
  NominationEnded: ['', 'no longer nominated', 'Room is kept for it no longer.'],
  LeavesSoon: ['warn', 'leaves soon', 'It has been told that it has to leave.'],
  BookFault: ['bad', 'books disagree', 'What the scheduler knew did not go together; it was set right or set aside.'],
  Edited: ['', 'edited', 'Somebody was allowed to change a quota, budget, class, policy or pool.'],
};
export const eventWords = (kind) => EVENTS[kind] ?? ['', kind, ''];
// [kind, word] of each.
export const eventKinds = () => Object.entries(EVENTS).map(([kind, [, word]]) => [kind, word]);

export const closedText = (node) => node.closed?.text || node.closed?.code || 'not ready';

// What a quota line is of: "h100", "any model", "h100 in spot-eu". Of the ledger's rows the pool stands behind an @.
export function lineWord({model, pool = null}) {
  const [name, at] = model.split('@');
  const inPool = pool ?? at ?? null;
  return (name === 'any' ? 'any model' : name) + (inPool === null ? '' : ` in ${inPool}`);
}
