// Addresses: #/VIEW, #/pods/NAMESPACE/NAME, #/gangs/NAMESPACE/NAME, #/nodes/NAME, #/teams/NAME,
// #/reclaims/NAME, each with ?key=value for what is filtered, sorted and open, so that whatever is on
// the screen can be sent to somebody.

const VIEWS = ['fleet', 'pods', 'queue', 'gangs', 'teams', 'reclaims', 'events', 'ledger', 'advice'];
// Views of one thing: how many names their address has, and the tab they belong to.
const PAGES = {pods: {view: 'pod', names: 2}, gangs: {view: 'gang', names: 2},
               nodes: {view: 'node', names: 1, tab: 'fleet'}, teams: {view: 'team', names: 1},
               reclaims: {view: 'reclaim', names: 1}};

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;  // typed by hand: shown as it is
  }
}

// {view, tab, names, query}; what is unknown is the fleet.
export function readAddress(hash = location.hash) {
  const [path, search] = hash.replace(/^#\/?/, '').split('?');
  const [first, ...rest] = path.split('/').map(decode);
  const names = rest.filter((part) => part !== '');
  const query = new URLSearchParams(search ?? '');
  const page = PAGES[first];
  if (page && names.length === page.names) return {view: page.view, tab: page.tab ?? first, names, query};
  const view = VIEWS.includes(first) ? first : 'fleet';
  return {view, tab: view, names: [], query};
}

// Changes parts of the query without leaving the view: {key: value}, '' or null takes one out.
export function changeQuery(changes) {
  const path = location.hash.split('?')[0] || '#/fleet';
  const {query} = readAddress();
  for (const [key, value] of Object.entries(changes)) {
    if (value === null || value === '' || value === undefined) query.delete(key);
    else query.set(key, value);
  }
  // Slashes of names stay readable.
  const text = query.toString().replaceAll('%2F', '/');
  history.replaceState(null, '', text ? `${path}?${text}` : path);
}

const encode = (text) => encodeURIComponent(text);
export const podHref = (namespace, name) => `#/pods/${encode(namespace)}/${encode(name)}`;
export const gangHref = (namespace, name) => `#/gangs/${encode(namespace)}/${encode(name)}`;
export const nodeHref = (name, gpu = null) => `#/nodes/${encode(name)}${gpu === null ? '' : `?gpu=${gpu}`}`;
export const teamHref = (name) => `#/teams/${encode(name)}`;
export const reclaimHref = (name) => `#/reclaims/${encode(name)}`;
