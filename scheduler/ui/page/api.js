// Asks the server once, on the page's own initiative; what is asked for again and again is the
// worker's. Where the server wants a token, the one that was typed in goes along.

const TIMEOUT_MS = 60000;
let token = sessionStorage.getItem('token') ?? '';
let namespace = sessionStorage.getItem('namespace') ?? '';

export function setToken(value) {
  token = value.trim();
  sessionStorage.setItem('token', token);
}

// The one that lists are asked for; '': whatever there is to be seen.
export function setNamespace(value) {
  namespace = value.trim();
  sessionStorage.setItem('namespace', namespace);
}

export function getNamespace() {
  return namespace;
}

export function getToken() {
  return token;
}

// The answer's JSON, or an Error with what the server said and its status.
export async function ask(path, body) {
  const headers = token ? {Authorization: `Bearer ${token}`} : {};
  const options = {cache: 'no-cache', signal: AbortSignal.timeout(TIMEOUT_MS), headers};
  if (body !== undefined) {
    options.method = 'POST';
    options.body = JSON.stringify(body);
    headers['Content-Type'] = 'application/json';
  }
  let reply;
  try {
    reply = await fetch(`../api/v1/${path}`, options);
  } catch (error) {
    throw new Error(error.name === 'TimeoutError' ? `no answer within ${TIMEOUT_MS / 1000} s`
      : 'the server cannot be reached');
  }
  if (reply.ok) return reply.json();
  const text = await reply.text();
  let why = `the server answered ${reply.status}`;
  try {
    why = JSON.parse(text).error ?? why;
  } catch {
    // no JSON: the status has to do
  }
  throw Object.assign(new Error(why), {status: reply.status});
}

const name = (...parts) => parts.map(encodeURIComponent).join('/');

export const readExplanation = (namespace, pod) => ask(`explain/${name(namespace, pod)}`);
export const readPod = (namespace, pod) => ask(`pods/${name(namespace, pod)}`);
export const readNode = (node) => ask(`nodes/${name(node)}`);
export const readTeam = (team) => ask(`teams/${name(team)}`);
export const readPods = (options) => ask(`pods?${query(options)}`);
export const readGang = (namespace, gang) => ask(`gangs/${name(namespace, gang)}`);
export const readGangs = () => ask(`gangs?${query({namespace})}`);
export const readEvents = (options) => ask(`events?${query({namespace, ...options})}`);
export const readReclaims = async () => (await ask('reclaims')).reclaims;
export const readReclaim = (reclaim) => ask(`reclaims/${name(reclaim)}`);
export const readAdvice = () => ask('advice');
export const readBurnDown = (budget) => ask(`burndown/${name(budget)}`);
export const askWhatIf = (pod) => ask('whatif', {pods: [pod]});

function query(parameters) {
  const given = Object.entries(parameters).filter(([, value]) => value !== null && value !== '');
  return new URLSearchParams(given).toString();
}
export const readLedger = (span) => ask(`ledger?${query(span)}`);
export const readHeld = (moment) => ask(`ledger/held?${query(moment)}`);
export const readSeries = (span) => ask(`ledger/series?${query(span)}`);
