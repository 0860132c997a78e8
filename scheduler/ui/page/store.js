// What the page knows of the cluster, as the worker tells it, and who wants to hear of it.

import {getNamespace, getToken} from './api.js';
import {Owners} from './owners.js';

export const cluster = {
  nodes: [],        // by name
  waiting: [],      // pods without a node
  placed: 0,
  namespaces: [],
  quotas: [],
  budgets: [],
  reclaims: [],
  known: new Set(),  // sources that have answered
  trouble: new Map(),  // source -> {why, status, ofCluster, since: Date of its last answer or null}
};

const byName = new Map();
const answered = new Map();  // source -> Date of its last answer
const questions = new Map();
let owners = new Owners();
let owned = {text: '', version: 0};
let serial = 0;
let worker = null;
let wanted = [];
let ahead = 0;  // milliseconds the server's clock is before this computer's

// The server's time, in milliseconds: ages and ends are told by it.
export function serverNow() {
  return Date.now() + ahead;
}

export const teamOfNamespace = (namespace) => owners.of(namespace);

export function teamOfPod(pod) {
  return owners.of(pod.slice(0, pod.indexOf('/')));
}

export const nodeOf = (name) => byName.get(name) ?? null;
export const ownersNow = () => owners;
export const ownersVersion = () => owned.version;
export const teamIsDeclared = (team) => cluster.quotas.some((quota) => quota.name === team);

// Everybody who has work here, by name.
export function teams() {
  return [...new Set(cluster.namespaces.map(teamOfNamespace))].sort();
}

// Teams, those first that own the most GPUs, then those that use the most. Empty as long as it is
// not known who the teams are.
export function teamsBySize() {
  if (!cluster.known.has('quotas') || !cluster.known.has('pods')) return [];
  if (!owners.declared) return teams();
  const parents = new Set(cluster.quotas.map((quota) => quota.parent));
  const sum = (quota, key) => quota.lines.reduce((total, line) => total + (line[key] ?? 0), 0);
  return cluster.quotas.filter((quota) => !parents.has(quota.name))
    .map((quota) => ({name: quota.name, owns: sum(quota, 'nominalGpus'), uses: sum(quota, 'usedGpus')}))
    .sort((a, b) => b.owns - a.owns || b.uses - a.uses || (a.name < b.name ? -1 : 1))
    .map(({name}) => name);
}

function take(message) {
  const {source} = message;
  cluster.known.add(source);
  if (source === 'nodes') {
    const {changed, gone} = message.text === undefined ? message
      : {changed: JSON.parse(message.text).nodes ?? [], gone: []};
    for (const name of gone) byName.delete(name);
    for (const node of changed) byName.set(node.name, node);
    cluster.nodes = [...byName.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  } else if (source === 'pods') {
    cluster.waiting = message.waiting;
    cluster.placed = message.placed;
    cluster.namespaces = message.namespaces;
  } else {
    cluster[source] = message.list;
    if (message.now) ahead = new Date(message.now).getTime() - Date.now();
    if (source === 'quotas') takeOwners(message.list);
  }
}

function takeOwners(quotas) {
  const text = JSON.stringify(quotas.map(({name, namespaces}) => [name, namespaces]));
  if (text === owned.text) return;
  owned = {text, version: owned.version + 1};
  owners = new Owners(quotas);
}

function note(source, failure) {
  if (failure) {
    const {failed: why, status, ofCluster} = failure;
    cluster.trouble.set(source, {why, status, ofCluster, since: answered.get(source) ?? null});
    return;
  }
  answered.set(source, new Date());
  cluster.trouble.delete(source);
}

// When the newest of the sources answered; null: none has.
export function lastAnswer() {
  return answered.size ? new Date(Math.max(...answered.values())) : null;
}

// onChange(source, whether it is the first) after each change, onContact() after each answer or failure.
export function start(onChange, onContact) {
  worker = new Worker('worker.js', {type: 'module'});
  worker.onmessage = ({data}) => {
    if (data.id !== undefined) {
      questions.get(data.id)?.(data.answer);
      questions.delete(data.id);
      return;
    }
    note(data.source, data.failed ? data : null);
    if (!data.failed && !data.same) {
      const first = !cluster.known.has(data.source);
      take(data);
      onChange(data.source, first);
    }
    onContact();
  };
  document.addEventListener('visibilitychange', refresh);
  refresh();
}

// Asks anew at once: the page came into view, or has another token.
export function refresh() {
  worker?.postMessage({set: {token: getToken(), namespace: getNamespace(), visible: !document.hidden, wanted}});
}

// Which sources the view needs every few seconds; the others are looked at now and then.
export function want(sources) {
  if (sources.join() === wanted.join()) return;
  wanted = sources;
  refresh();
}

function askWorker(question) {
  return new Promise((resolve) => {
    serial += 1;
    questions.set(serial, resolve);
    worker.postMessage({...question, id: serial});
  });
}

// The API's entry of a pod by 'ns/name'; null: unknown.
export const podEntry = (pod) => askWorker({pod});
// A part of the list of all pods: {rows, total, all}; the query as in pod_list.js.
export const listPods = (query) => askWorker({list: query});
