// A day in the life of the quickstart's fleet: three teams, sixty pods, one every twenty minutes, so
// that the ledger, budgets, lending and what was taken back have something to show.

import {readFileSync} from 'node:fs';
import path from 'node:path';

import {pod, ROOT, Server} from './server.mjs';

const FOLDER = path.join(ROOT, 'scheduler/quickstart');
const STEP_SECONDS = 1200;
// Work that ends on the way: name of the pod that ends -> before which one.
const ENDS = {'smoke-0': 'distil', 'smoke-1': 'rerank-0', 'ci-0': 'thumbnail-0'};

function* workload() {
  for (const entry of JSON.parse(readFileSync(path.join(FOLDER, 'pods.json'), 'utf8')).workloads) {
    for (let number = 0; number < entry.count; ++number) {
      yield pod(entry.team, entry.count === 1 ? entry.name : `${entry.name}-${number}`, entry);
    }
  }
}

export async function busyDay() {
  const server = await Server.start({objects: [path.join(FOLDER, 'fleet.yaml'), path.join(FOLDER, 'teams.yaml')]});
  const nodes = (await server.get('nodes')).nodes.map((node) => node.name);
  for (const one of workload()) {
    for (const [ending, before] of Object.entries(ENDS)) {
      if (before === one.metadata.name) await server.remove('Pod', 'team-platform', ending);
    }
    await server.apply(one);
    if (!await server.schedule(one, nodes)) await tryAgain(server, one, nodes);
    await server.advance(STEP_SECONDS);
  }
  await comeTogether(server, gangOf('team-platform', 'wide', 2, {'nvidia.com/gpu': 4}, {'tranche.dev/model': 'v100'}), nodes);
  await foretell(server);
  return server;
}

// Starts of pods are foretold when somebody asks; a machine that took long over the last forecast rests before the next.
async function foretell(server) {
  const nameOf = ({namespace, name}) => `${namespace}/${name}`;
  for (let tries = 0; tries < 120; ++tries) {
    const known = new Set((await server.get('forecast')).forecasts.map(nameOf));
    const {pods} = await server.get('pods?state=pending');
    if (pods.every((one) => known.has(nameOf(one)))) return;
    await new Promise((resolve) => { setTimeout(resolve, 500); });
  }
  throw new Error('expected a forecast of each pod that waits, found some without for a minute');
}

// All are there before the first is asked about; those of a gang are bound when they come again.
async function comeTogether(server, pods, nodes) {
  await server.apply(...pods);
  for (const one of [...pods, ...pods]) await server.schedule(one, nodes);
}

// Pods that start all or none.
function gangOf(namespace, gang, size, limits, annotations = {}) {
  return Array.from({length: size}, (_, rank) => pod(namespace, `${gang}-${rank}`, {limits, annotations: {
    'tranche.dev/gang': gang, 'tranche.dev/gang-size': String(size), ...annotations}}));
}

// Work that says how long it runs, and so lets others know when they start: on two machines of eight H100 the gang
// `ring` for six hours and the pod `solo` for three; the gang `next-ring` and the pod `after` wait for them. On a third
// machine, of V100, runs `silent`, which says nothing, and `patient` waits for it.
export async function plannedWork() {
  const server = await Server.start({ledger: false});
  const [first, second] = [0, 1].map((at) => machine(at, 1)[0]);
  const old = machine(2, 1)[0];
  old.metadata.labels['nvidia.com/gpu.product'] = 'Tesla-V100-SXM2-32GB';
  const names = [first, second, old].map(({metadata}) => metadata.name);
  await server.apply({apiVersion: 'v1', kind: 'Namespace', metadata: {name: 'team-a'}}, first, second, old);
  const work = (name, gpus, annotations) => pod('team-a', name, {limits: {'nvidia.com/gpu': gpus}, annotations});
  const hours = (count) => ({'tranche.dev/model': 'h100', 'tranche.dev/expected-runtime': `${count}h`});
  const v100 = {'tranche.dev/model': 'v100'};
  await comeTogether(server, gangOf('team-a', 'ring', 2, {'nvidia.com/gpu': 4}, hours(6)), names);
  await comeTogether(server, [work('solo', 8, hours(3)), work('silent', 8, v100)], names);
  await server.advance(60);
  await comeTogether(server, gangOf('team-a', 'next-ring', 2, {'nvidia.com/gpu': 8}, hours(2)), names);
  await comeTogether(server, [work('after', 4, hours(1)), work('patient', 8, v100)], names);
  await server.advance(60);
  await foretell(server);
  return server;
}

// What room is made for comes again, as kube-scheduler would have it.
async function tryAgain(server, one, nodes) {
  for (let round = 0; round < 5; ++round) {
    await server.advance(2);
    const running = (await server.get('reclaims')).reclaims.some((reclaim) => !reclaim.finishedAt);
    if (!running || await server.schedule(one, nodes)) return;
  }
}

// `nodes` machines of eight H100 each, five or six GPUs taken, `teams` teams with a quota: five pods a node, and one pod
// that waits for every five nodes.
export async function largeFleet(nodes, teams = 8) {
  const server = await Server.start({ledger: false});
  const objects = [];
  for (let team = 0; team < teams; ++team) {
    objects.push({apiVersion: 'v1', kind: 'Namespace', metadata: {name: `team-${team}`, labels: {team: `t${team}`}}});
    objects.push({apiVersion: 'tranche.dev/v1alpha1', kind: 'GPUQuota', metadata: {name: `quota-${team}`},
                  spec: {namespaceSelector: {matchLabels: {team: `t${team}`}},
                         lines: [{model: 'h100', nominal: {gpus: nodes}}]}});
  }
  for (let at = 0; at < nodes; ++at) objects.push(...machine(at, teams));
  for (let at = 0; at < nodes / 5; ++at) {
    objects.push(pod(`team-${at % teams}`, `waits-${at}`, {limits: {'nvidia.com/gpu': 8}}));
  }
  for (let at = 0; at < objects.length; at += 1000) await server.apply(...objects.slice(at, at + 1000));
  return server;
}

function machine(at, teams) {
  const name = `node-${String(at).padStart(5, '0')}`;
  const amounts = {cpu: '192', memory: '2000Gi', pods: '110', 'nvidia.com/gpu': '8'};
  const node = {
    apiVersion: 'v1', kind: 'Node',
    metadata: {name, labels: {
      'kubernetes.io/hostname': name, 'nvidia.com/gpu.product': 'NVIDIA-H100-80GB-HBM3',
      'nvidia.com/gpu.machine': 'p5.48xlarge', 'nvidia.com/gpu.memory': '81559', 'nvidia.com/gpu.count': '8',
      'nvidia.com/gpu.replicas': '1', 'nvidia.com/gpu.family': 'hopper', 'nvidia.com/mig.strategy': 'none'}},
    status: {capacity: amounts, allocatable: amounts,
             conditions: [{type: 'Ready', status: at % 500 === 499 ? 'False' : 'True'}]},
  };
  return [node, ...[1 + at % 2, 1, 1, 1, 1].map((count, index) => onNode(name, `team-${(at + index * 3) % teams}`, `work-${at}-${index}`, count))];
}

function onNode(node, namespace, name, gpus) {
  const bound = pod(namespace, name, {limits: {'nvidia.com/gpu': gpus}});
  bound.spec.nodeName = node;
  bound.status.phase = 'Running';
  return bound;
}

// Pods that come and go on the large fleet, half of `rate` a second each, until it is stopped.
export class Coming {
  #server;
  #nodes;
  #here = [];
  #made = 0;
  #stopped = false;
  #done;

  constructor(server, nodes, rate) {
    this.#server = server;
    this.#nodes = nodes;
    this.#done = this.#go(rate / 2);
  }

  async #go(each) {
    for (let next = performance.now(); !this.#stopped; next += 1000) {
      const come = Array.from({length: each}, () => this.#one());
      await this.#server.apply(...come);
      const go = this.#here.length < each ? [] : this.#here.splice(0, each);
      for (const {metadata} of go) await this.#server.remove('Pod', metadata.namespace, metadata.name);
      this.#here.push(...come);
      await this.#server.advance(1);
      await new Promise((resolve) => { setTimeout(resolve, Math.max(0, next + 1000 - performance.now())); });
    }
  }

  // On nodes all over the fleet, one after another.
  #one() {
    const at = this.#made++ * 379 % this.#nodes;
    return onNode(`node-${String(at).padStart(5, '0')}`, `team-${at % 8}`, `comes-${this.#made}`, 1);
  }

  stop() {
    this.#stopped = true;
    return this.#done;
  }
}

// A cluster in which whatever may be any text is markup.
export async function hostileCluster() {
  const markup = '<img src=x onerror=alert(1)><b>';
  const server = await Server.start();
  const node = {
    apiVersion: 'v1', kind: 'Node',
    metadata: {name: 'odd', labels: {'nvidia.com/gpu.product': markup, 'nvidia.com/gpu.memory': '81559',
                                     'nvidia.com/gpu.count': '2'}, annotations: {'tranche.dev/topology': markup}},
    status: {capacity: {'nvidia.com/gpu': '2'}, allocatable: {'nvidia.com/gpu': '2'},
             conditions: [{type: 'Ready', status: 'True'}]},
  };
  const runs = pod('team-a', 'runs', {limits: {'nvidia.com/gpu': 1}});
  const waits = pod('team-a', 'waits', {limits: {'nvidia.com/gpu': 8}, annotations: {
    'tranche.dev/gang': markup, 'tranche.dev/gang-size': '2', 'tranche.dev/model': markup}});
  waits.spec.priorityClassName = markup;
  await server.apply({apiVersion: 'v1', kind: 'Namespace', metadata: {name: 'team-a', labels: {team: 'a'}}},
                     {apiVersion: 'tranche.dev/v1alpha1', kind: 'GPUQuota', metadata: {name: 'alpha'},
                      spec: {namespaceSelector: {matchLabels: {team: 'a'}},
                             lines: [{model: 'any', nominal: {gpus: 2}}]}}, node, runs, waits);
  await server.schedule(runs, ['odd']);
  await server.schedule(waits, ['odd']);
  return {server, markup};
}
