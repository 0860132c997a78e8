// Reads the server's JSON and calls back in a period while the page is visible.

export const CLUSTER_PERIOD_MS = 2000;
// What to change in a fleet changes slowly.
export const ADVICE_PERIOD_MS = 30000;
// A large fleet takes long to send and draw: at most this part of the time goes into polling.
const BUSY_SHARE = 0.25;
const TIMEOUT_MS = 20000;

async function getJson(path) {
  const reply = await fetch(path, {cache: 'no-cache', signal: AbortSignal.timeout(TIMEOUT_MS)});
  if (!reply.ok) throw new Error(`${path} answered ${reply.status}`);
  return reply.json();
}

export async function readCluster() {
  const [nodes, pods] = await Promise.all([getJson('../api/v1/nodes'), getJson('../api/v1/pods')]);
  return {nodes: nodes.nodes ?? [], pods: pods.pods ?? []};
}

export function readExplanation(namespace, name) {
  const path = [namespace, name].map(encodeURIComponent).join('/');
  return getJson(`../api/v1/explain/${path}`);
}

export function readAdvice() {
  return getJson('../api/v1/advice');
}

// Calls onData(answer of read()) after each answer and onError(error) after each failure, never two
// at once.
export function poll(read, periodMs, onData, onError) {
  let timer = null;
  let running = false;

  async function round() {
    if (running) return;
    running = true;
    const start = performance.now();
    try {
      onData(await read());
    } catch (error) {
      onError(error);
    }
    running = false;
    const spent = performance.now() - start;
    schedule(Math.max(periodMs, spent / BUSY_SHARE));
  }

  function schedule(delay) {
    clearTimeout(timer);
    timer = document.hidden ? null : setTimeout(round, delay);
  }

  document.addEventListener('visibilitychange', () => schedule(0));
  round();
}
