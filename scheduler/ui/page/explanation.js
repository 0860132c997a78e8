// Why a pod waits: the numbers behind its reason, what would change it, what every node answers.

import {el} from './dom.js';
import {formatLost, formatMoment, plural} from './format.js';
import {nodeLink} from './links.js';

const MOST_GROUPS = 12;
const MOST_NAMES = 3;

function planWords(plan) {
  if (!plan) return null;
  if (plan.blocked) {
    const until = plan.blocked.until ? ` until ${formatMoment(plan.blocked.until)}` : '';
    return el('p', {}, `Making room is held up${until}: ${plan.blocked.detail || plan.blocked.text}.`);
  }
  const lost = plan.victims.reduce((sum, victim) => sum + victim.lostGpuSeconds, 0);
  return el('p', {}, 'Room is being made on ', plan.node ? nodeLink(plan.node) : 'a node', `: ${plan.progress}, ` +
            `${formatLost(lost)} of work lost.`);
}

function claimWords(claims) {
  if (claims.length === 0) return null;
  const words = claims.map((claim) =>
    `${claim.name}: ${claim.allocated ? `on ${claim.node ?? 'a node'}` : 'not allocated yet'}, ${claim.gpus} GPUs`);
  return el('p', {}, `Resource claims: ${words.join('; ')}.`);
}

function nodesList(nodes) {
  const groups = new Map();
  for (const verdict of nodes) {
    const text = verdict.fits ? 'it fits' : verdict.reason?.text || 'it does not fit';
    const detail = verdict.reason?.detail ?? '';
    const key = JSON.stringify([text, detail]);
    if (!groups.has(key)) groups.set(key, {text, detail, names: []});
    groups.get(key).names.push(verdict.name);
  }
  const sorted = [...groups.values()].sort((a, b) => b.names.length - a.names.length);
  if (sorted.length === 0) return el('p', {class: 'quiet-text'}, 'No node has answered yet.');
  const who = (names) => (names.length > MOST_NAMES ? [plural(names.length, 'node')]
    : names.flatMap((name, at) => [at ? ', ' : '', nodeLink(name)]));
  const rest = sorted.slice(MOST_GROUPS).reduce((sum, {names}) => sum + names.length, 0);
  return el('ul', {class: 'nodes-say'}, sorted.slice(0, MOST_GROUPS).map(({text, detail, names}) => el('li', {},
    el('strong', {}, who(names)), `: ${text}`,
    detail ? el('span', {class: 'quiet-text under'}, detail) : null)),
    rest ? el('li', {class: 'quiet-text'}, `and ${plural(rest, 'node')} with other answers`) : null);
}

// kube-scheduler's own message, where the reason does not end with it.
function schedulerWords(pod, found) {
  const says = found.schedulerSays;
  if (!says || pod.reason?.detail?.endsWith(says)) return null;
  return el('p', {class: 'quiet-text'}, `kube-scheduler says: ${says}`);
}

// `found`: the answer of explain, {error}, or null while it is on its way. `whatIf`: a button.
export function explanation(pod, found, whatIf) {
  if (!found) return el('p', {class: 'quiet-text'}, 'Asking every node …');
  if (found.error) return el('p', {class: 'bad'}, `Not explained: ${found.error}.`);
  return el('div', {class: 'explanation'},
    pod.reason?.detail ? el('p', {}, pod.reason.detail) : null,
    schedulerWords(pod, found),
    el('h3', {}, 'What would change it'),
    el('p', {class: 'advice-line'}, found.advice || 'Nothing that Tranche knows of; see the nodes below.'),
    planWords(found.plan),
    claimWords(found.claims ?? []),
    (found.ownLimits ?? []).map((sentence) => el('p', {class: 'quiet-text'}, `Its ${sentence}.`)),
    whatIf,
    el('h3', {}, 'What the nodes answer'),
    nodesList(found.nodes ?? []));
}
