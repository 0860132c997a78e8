// What the page knows of the cluster, as the worker tells it, and who wants to hear of it.

import {getToken} from './api.js';

export const cluster = {
  nodes: [],        // by name
  waiting: [],      // pods without a node
  placed: 0,
  namespaces: [],
  quotas: [],
  budgets: [],
  reclaims: [],
  known: new Set(),  // sources that have answered
};

const byName = new Map();
const leaves = new Map();  // namespace -> quota that owns it
const questions = new Map();
let serial = 0;
let worker = null;
let ahead = 0;  // milliseconds the server's clock is before this computer's

// The server's time, in milliseconds: ages and ends are told by it.
export function serverNow() {
  return Date.now() + ahead;
}

// The team of a namespace: the quota that owns it, else the namespace itself.
export function teamOfNamespace(namespace) {
  return leaves.get(namespace) ?? namespace;
}

export function teamOfPod(pod) {
  return teamOfNamespace(pod.slice(0, pod.indexOf('/')));
}

export function teams() {
  return [...new Set(cluster.namespaces.map(teamOfNamespace))].sort();
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
    if (source === 'quotas') {
      leaves.clear();
      for (const quota of message.list) {
        for (const namespace of quota.namespaces) leaves.set(namespace, quota.name);
      }
    }
  }
}

// onChange(source) after each change, onContact(error or null) after each answer.
export function start(onChange, onContact) {
  worker = new Worker('worker.js', {type: 'module'});
  worker.onmessage = ({data}) => {
    if (data.id !== undefined) {
      questions.get(data.id)?.(data.pod);
      questions.delete(data.id);
    } else if (data.failed) {
      onContact(data);
    } else {
      if (data.source) {
        take(data);
        onChange(data.source);
      }
      onContact(null);
    }
  };
  document.addEventListener('visibilitychange', refresh);
  refresh();
}

// Asks anew at once: the page came into view, or has another token.
export function refresh() {
  worker.postMessage({set: {token: getToken(), visible: !document.hidden}});
}

// The API's entry of a pod by 'ns/name'; null: unknown.
export function podEntry(pod) {
  return new Promise((resolve) => {
    serial += 1;
    questions.set(serial, resolve);
    worker.postMessage({pod, id: serial});
  });
}
