// Keeps what the page shows up to date, off its thread: polls, parses, and hands over what changed.
//
// Polling, not a stream: every question stands alone, so that proxies, restarts and a change of
// leader need no care; an unchanged document costs a 304 without a body (If-None-Match), and of nodes
// and pods only those that changed since the last answer are asked for (?since=). Thousands of nodes and pods
// are parsed, compared, searched and sorted here, and only what is looked at goes to the page. What
// the view does not need is asked for seldom.
//
// In:  {set: {token, namespace, visible, wanted: [source]}}, {pod: 'ns/name', id}, {list: query, id}
// Out: {source: 'nodes', text} at first, then {source: 'nodes', changed, gone},
//      {source: 'pods', waiting, placed, namespaces}, {source: 'quotas' | 'budgets', list},
//      {source: 'reclaims', list, now}, {source, same: true}, {source, failed, status, ofCluster},
//      {id, answer}

import {Owners} from './owners.js';
import {isWaiting, selectPods} from './pod_list.js';

const PERIOD_MS = 2000;
const SELDOM_MS = 30000;
// At most this part of the time goes into one document.
const BUSY_SHARE = 0.25;
const TIMEOUT_MS = 20000;

let token = '';
let namespace = '';
let askers = 0;  // counts them, and returns to the page: what changed since holds for one alone
let visible = true;
let wanted = [];
let owners = new Owners();
let allPods = [];
let pods = new Map();   // 'ns/name' -> the API's entry
const nodes = new Map();  // name -> its JSON text

const keyOf = ({namespace: of, name}) => `${of}/${name}`;

// A pod that went may have been followed by another of its name.
function mergePods(changed, gone) {
  for (const pod of gone) {
    if (pods.get(keyOf(pod))?.uid === pod.uid) pods.delete(keyOf(pod));
  }
  const before = pods.size;
  for (const pod of changed) pods.set(keyOf(pod), pod);
  if (pods.size === before) return;
  pods = new Map([...pods].sort(([a], [b]) => (a < b ? -1 : 1)));
}

const takers = {
  nodes(list, document) {
    const changed = [];
    if (document.complete === false) {
      for (const node of list) nodes.set(node.name, JSON.stringify(node));
      for (const name of document.gone) nodes.delete(name);
      return {changed: list, gone: document.gone};
    }
    const seen = new Set();
    for (const node of list) {
      const text = JSON.stringify(node);
      seen.add(node.name);
      if (nodes.get(node.name) === text) continue;
      nodes.set(node.name, text);
      changed.push(node);
    }
    const gone = [...nodes.keys()].filter((name) => !seen.has(name));
    for (const name of gone) nodes.delete(name);
    return {changed, gone};
  },
  pods(list, document) {
    if (document.complete === false) {
      mergePods(list, document.gone);
    } else {
      pods = new Map(list.map((pod) => [keyOf(pod), pod]));
    }
    allPods = [...pods.values()];
    const waiting = allPods.filter(isWaiting);
    const namespaces = new Set(allPods.map((pod) => pod.namespace));
    return {waiting, placed: allPods.length - waiting.length, namespaces: [...namespaces].sort()};
  },
  quotas(list) {
    owners = new Owners(list);
    return {list};
  },
  budgets: (list) => ({list}),
  reclaims: (list, document) => ({list, now: document.now}),
};

const sources = Object.keys(takers).map((name) => (
  {name, tag: null, version: null, started: false, asked: 0, timer: null, running: false}));

async function read(source) {
  const headers = token ? {Authorization: `Bearer ${token}`} : {};
  if (source.tag) headers['If-None-Match'] = source.tag;
  const which = new URLSearchParams();
  if (namespace) which.set('namespace', namespace);
  if (source.version) which.set('since', source.version);
  const asker = askers;
  const reply = await fetch(`../api/v1/${source.name}${which.toString() && `?${which}`}`,
                            {cache: 'no-store', headers, signal: AbortSignal.timeout(TIMEOUT_MS)});
  if (reply.status === 304) return {same: true};
  if (!reply.ok) throw await refusal(reply);
  const text = await reply.text();
  if (asker !== askers) return {same: true};  // asked before the token or the namespace was another
  // The first nodes go on as they came: a text is copied to the page faster than what is made of it.
  const first = source.name === 'nodes' && !source.started;
  source.started = true;
  if (first) postMessage({source: 'nodes', text});
  source.tag = reply.headers.get('ETag');
  const document = JSON.parse(text);
  source.version = document.version ?? null;
  const news = takers[source.name](document[source.name] ?? [], document);
  return first ? {same: true} : news;
}

// In the server's words where it says what its caller may not do.
async function refusal(reply) {
  let why = `the server answered ${reply.status}`;
  if (reply.status === 403) why = (await reply.json().catch(() => ({}))).error ?? why;
  const ofCluster = reply.headers.get('WWW-Authenticate')?.includes('kubernetes') ?? false;
  return Object.assign(new Error(why), {status: reply.status, ofCluster});
}

// In our words: those of browsers differ, and say little.
function wordsOf(error) {
  if (error.status) return error.message;
  if (error.name === 'TimeoutError') return `no answer within ${TIMEOUT_MS / 1000} s`;
  if (error instanceof TypeError) return 'the server cannot be reached';
  return error.message;
}

async function round(source) {
  if (source.running) return;
  source.running = true;
  const start = performance.now();
  source.asked = start;
  try {
    postMessage({source: source.name, ...await read(source)});
  } catch (error) {
    const {status = 0, ofCluster = false} = error;
    postMessage({source: source.name, failed: wordsOf(error), status, ofCluster});
  }
  source.running = false;
  source.took = performance.now() - start;
  schedule(source);
}

function periodOf(source) {
  const period = wanted.includes(source.name) ? PERIOD_MS : SELDOM_MS;
  return Math.max(period, (source.took ?? 0) / BUSY_SHARE);
}

function schedule(source) {
  clearTimeout(source.timer);
  const due = source.asked ? source.asked + periodOf(source) - performance.now() : 0;
  source.timer = visible ? setTimeout(round, Math.max(0, due), source) : null;
}

onmessage = ({data}) => {
  if (data.pod !== undefined) {
    postMessage({id: data.id, answer: pods.get(data.pod) ?? null});
    return;
  }
  if (data.list !== undefined) {
    postMessage({id: data.id, answer: {...selectPods(allPods, data.list, owners), all: allPods.length}});
    return;
  }
  const again = data.set.token !== token || data.set.namespace !== namespace || (data.set.visible && !visible);
  ({token, namespace, visible, wanted} = data.set);
  if (again) askers += 1;
  for (const source of sources) {
    if (again) Object.assign(source, {asked: 0, version: null, tag: null});
    schedule(source);
  }
};
