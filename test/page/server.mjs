// A real Tranche on an embedded cluster with a clock moved by hand, and what kube-scheduler and
// people would do to it.

import {spawn} from 'node:child_process';
import {mkdtempSync, rmSync} from 'node:fs';
import {connect, createServer} from 'node:net';
import {tmpdir} from 'node:os';
import path from 'node:path';
import {createInterface} from 'node:readline';

export const ROOT = process.env.TRANCHE_ROOT ?? path.resolve(path.dirname(new URL(import.meta.url).pathname), '../..');
export const BINARY = process.env.TRANCHE_BIN ?? path.join(ROOT, 'build/release/bin/tranche');
const START_MS = 60000;

export class Server {
  // `objects`: files to load. `ledger`: false for a server without one.
  static async start({objects = [], ledger = true, token = null} = {}) {
    const folder = mkdtempSync(path.join(tmpdir(), 'tranche-page-'));
    const args = ['serve', '--cluster', 'embedded', '--clock', 'manual', '--listen', '127.0.0.1:0'];
    if (ledger) args.push('--ledger', path.join(folder, 'ledger.db'));
    for (const file of objects) args.push('--objects', file);
    const child = spawn(BINARY, args, {stdio: ['ignore', 'ignore', 'pipe']});
    const server = new Server(child, folder);
    server.url = await server.#listening();
    server.token = token;
    return server;
  }

  constructor(process, folder) {
    this.process = process;
    this.folder = folder;
    this.log = [];
    this.gone = new Promise((resolve) => process.once('exit', resolve));
  }

  #listening() {
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => reject(new Error(`expected a line "listening on", found:\n${this.log.join('\n')}`)),
                              START_MS);
      createInterface({input: this.process.stderr}).on('line', (line) => {
        this.log.push(line);
        const found = /listening on (127\.0\.0\.1:\d+)/.exec(line);
        if (!found) return;
        clearTimeout(late);
        resolve(`http://${found[1]}`);
      });
      this.process.once('error', reject);
      this.gone.then((code) => reject(new Error(`the server ended with ${code}:\n${this.log.join('\n')}`)));
    });
  }

  async stop() {
    this.process.kill('SIGTERM');
    await this.gone;
    rmSync(this.folder, {recursive: true, force: true});
  }

  async call(method, target, body) {
    const reply = await fetch(this.url + target, {method, body: body === undefined ? undefined : JSON.stringify(body)});
    const text = await reply.text();
    if (!reply.ok) throw new Error(`${method} ${target}: expected 200, found ${reply.status}: ${text.slice(0, 400)}`);
    return text ? JSON.parse(text) : null;
  }

  get(what) {
    return this.call('GET', `/api/v1/${what}`);
  }

  apply(...objects) {
    return this.call('POST', '/embedded/v1/apply', {apiVersion: 'v1', kind: 'List', items: objects});
  }

  remove(kind, namespace, name) {
    return this.call('POST', '/embedded/v1/delete', {kind, metadata: {namespace, name}, namespace, name});
  }

  advance(seconds) {
    return this.call('POST', '/embedded/v1/clock', {advanceSeconds: seconds});
  }

  // One scheduling cycle: the node, or null.
  async schedule(pod, nodes) {
    const meta = pod.metadata;
    const answer = await this.call('POST', '/scheduler/filter', {Pod: pod, Nodes: null, NodeNames: nodes});
    if (answer.Error || !answer.NodeNames?.length) return null;
    const bound = await this.call('POST', '/scheduler/bind', {
      PodName: meta.name, PodNamespace: meta.namespace, PodUID: meta.uid, Node: answer.NodeNames[0]});
    return bound.Error ? null : answer.NodeNames[0];
  }
}

// A way to the server that counts what is sent to the browser.
export class Counter {
  static async before(server) {
    const {hostname, port} = new URL(server.url);
    const counter = new Counter();
    counter.#way = createServer((near) => {
      const far = connect(port, hostname);
      near.pipe(far);
      far.pipe(near);
      far.on('data', (chunk) => { counter.bytes += chunk.length; });
      for (const end of [near, far]) end.on('error', () => { near.destroy(); far.destroy(); });
      near.on('close', () => far.destroy());
    });
    await new Promise((resolve) => { counter.#way.listen(0, '127.0.0.1', resolve); });
    counter.url = `http://127.0.0.1:${counter.#way.address().port}`;
    return counter;
  }

  bytes = 0;
  #way;

  stop() {
    this.#way.close();
  }
}

export function pod(namespace, name, {limits = {}, annotations = {}, priorityClass = null} = {}) {
  const amounts = Object.fromEntries(Object.entries(limits).map(([key, value]) => [key, String(value)]));
  const spec = {terminationGracePeriodSeconds: 1,
                containers: [{name: 'main', image: 'registry.example/main:1', resources: {limits: amounts, requests: amounts}}]};
  if (priorityClass) spec.priorityClassName = priorityClass;
  return {apiVersion: 'v1', kind: 'Pod', spec, status: {phase: 'Pending'},
          metadata: {namespace, name, uid: `uid-${namespace}-${name}`, annotations}};
}
