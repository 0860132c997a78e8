// Keeps what the page shows up to date, off its thread: polls, parses, and hands over what changed.
//
// Polling, not a stream: every question stands alone, so that proxies, restarts and a change of
// leader need no care; an unchanged document costs a 304 without a body (If-None-Match). Thousands
// of nodes are parsed and compared here, and only those that differ go to the page.
//
// In:  {set: {token, visible}}, {pod: 'ns/name', id}
// Out: {source: 'nodes', text} at first, then {source: 'nodes', changed, gone},
//      {source: 'pods', waiting, placed, namespaces}, {source: 'quotas' | 'budgets', list},
//      {source: 'reclaims', list, now}, {contact: true}, {failed, status}, {id, pod}

const PERIOD_MS = 2000;
// At most this part of the time goes into one document.
const BUSY_SHARE = 0.25;
const TIMEOUT_MS = 20000;

let token = '';
let visible = true;
const pods = new Map();   // 'ns/name' -> the API's entry
const nodes = new Map();  // name -> its JSON text

const takers = {
  nodes(list) {
    const changed = [];
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
  pods(list) {
    pods.clear();
    const waiting = [];
    const namespaces = new Set();
    for (const pod of list) {
      pods.set(`${pod.namespace}/${pod.name}`, pod);
      namespaces.add(pod.namespace);
      if (pod.state === 'pending' || pod.state === 'claimed') waiting.push(pod);
    }
    return {waiting, placed: list.length - waiting.length, namespaces: [...namespaces].sort()};
  },
  quotas: (list) => ({list}),
  budgets: (list) => ({list}),
  reclaims: (list, document) => ({list, now: document.now}),
};

const sources = Object.keys(takers).map((name) => (
  {name, tag: null, started: false, timer: null, running: false}));

async function read(source) {
  const headers = token ? {Authorization: `Bearer ${token}`} : {};
  if (source.tag) headers['If-None-Match'] = source.tag;
  const reply = await fetch(`../api/v1/${source.name}`,
                            {cache: 'no-store', headers, signal: AbortSignal.timeout(TIMEOUT_MS)});
  if (reply.status === 304) return null;
  if (!reply.ok) {
    throw Object.assign(new Error(`${source.name}: the server answered ${reply.status}`),
                        {status: reply.status});
  }
  const text = await reply.text();
  // The first nodes go on as they came: a text is copied to the page faster than what is made of it.
  const first = source.name === 'nodes' && !source.started;
  source.started = true;
  if (first) postMessage({source: 'nodes', text});
  source.tag = reply.headers.get('ETag');
  const document = JSON.parse(text);
  const news = takers[source.name](document[source.name] ?? [], document);
  return first ? null : news;
}

async function round(source) {
  if (source.running) return;
  source.running = true;
  const start = performance.now();
  try {
    const news = await read(source);
    postMessage(news ? {source: source.name, ...news} : {contact: true});
  } catch (error) {
    postMessage({failed: error.message, status: error.status ?? 0});
  }
  source.running = false;
  schedule(source, Math.max(PERIOD_MS, (performance.now() - start) / BUSY_SHARE));
}

function schedule(source, delay) {
  clearTimeout(source.timer);
  source.timer = visible ? setTimeout(round, delay, source) : null;
}

onmessage = ({data}) => {
  if (data.pod !== undefined) {
    postMessage({id: data.id, pod: pods.get(data.pod) ?? null});
    return;
  }
  token = data.set.token;
  visible = data.set.visible;
  for (const source of sources) schedule(source, 0);
};
