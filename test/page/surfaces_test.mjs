// The same moment, asked of every surface: the page, the command line, the API, /metrics and the ledger's report say the
// same GPUs, the same waiting pods and the same names of teams.

import assert from 'node:assert/strict';
import {execFile} from 'node:child_process';
import {after, before, test} from 'node:test';
import {promisify} from 'node:util';

import {launch, Visit} from './browser.mjs';
import {busyDay} from './scenario.mjs';
import {BINARY} from './server.mjs';

const run = promisify(execFile);

let server;
let browser;
let series;  // [{name, labels, value}] of /metrics
before(async () => {
  [server, browser] = await Promise.all([busyDay(), launch()]);
  const text = await (await fetch(`${server.url}/metrics`)).text();
  series = text.split('\n').filter((line) => line && !line.startsWith('#')).map((line) => {
    const [, name, labels, value] = /^([a-z_]+)(?:\{(.*)\})? (\S+)/.exec(line);
    return {name, labels: Object.fromEntries([...(labels ?? '').matchAll(/(\w+)="([^"]*)"/g)].map(([, key, text]) => [key, text])),
            value: Number(value)};
  });
});
after(async () => {
  await browser?.close();
  await server?.stop();
});

// The rows of a command's first table, each by its titles. No cell is empty, and none has two blanks in it.
async function rowsOf(...args) {
  const {stdout} = await run(BINARY, [...args, '--server', server.url]);
  const [titles, ...rows] = stdout.split('\n\n')[0].trimEnd().split('\n').map((line) => line.trim().split(/ {2,}/));
  return rows.map((cells) => Object.fromEntries(titles.map((title, at) => [title, cells[at]])));
}
const metric = (name, labels = {}) => series
  .filter((one) => one.name === name && Object.entries(labels).every(([key, text]) => one.labels[key] === text))
  .reduce((sum, {value}) => sum + value, 0);
async function onPage(view, read) {
  const one = await Visit.open(browser, server, {view});
  try {
    return await read(one.page);
  } finally {
    await one.close();
  }
}
const close = (a, b, what) => assert.ok(Math.abs(a - b) < 0.006, `${what}: expected ${a}, found ${b}`);

const milliFree = ({freeMilli, freeMiB, memoryMiB}) => Math.min(freeMilli, memoryMiB > 0 ? 1000 * freeMiB / memoryMiB : 1000);

test('free GPUs of a node: API, command line, page', async () => {
  const {nodes} = await server.get('nodes');
  const rows = new Map((await rowsOf('nodes')).map((row) => [row.NODE, row]));
  assert.equal(rows.size, nodes.length);
  for (const {name, gpus} of nodes) {
    const free = gpus.reduce((sum, gpu) => sum + milliFree(gpu), 0) / 1000;
    assert.equal(Number(rows.get(name).GPUS), gpus.length, name);
    close(free, Number(rows.get(name).FREE), `${name} on the command line`);
    const text = await onPage(`nodes/${name}`, async (page) => {
      const fact = page.locator('dt', {hasText: /^In use$/}).locator('xpath=following-sibling::dd[1]').first();
      await fact.waitFor();
      return fact.innerText();
    });
    const [, used, all] = /^([\d.]+) of (\d+) GPU/.exec(text);
    close(free, Number(all) - Number(used), `${name} on the page, ${text}`);
  }
});

test('GPUs of a model: API, metrics, command line', async () => {
  const {nodes} = await server.get('nodes');
  const rows = new Map((await rowsOf('top', '--once')).map((row) => [row.MODEL, row]));
  for (const model of new Set(nodes.map((node) => node.model))) {
    const gpus = nodes.filter((node) => node.model === model).flatMap((node) => node.gpus);
    assert.equal(Number(rows.get(model).GPUS), gpus.length, model);
    assert.equal(metric('tranche_gpu_capacity', {model}), gpus.length, model);
    const free = gpus.reduce((sum, gpu) => sum + milliFree(gpu), 0) / 1000;
    close(free, gpus.length - metric('tranche_gpu_allocated', {model}), `${model} by its metric`);
    assert.equal(Number(rows.get(model).IDLE), gpus.filter((gpu) => gpu.pods.length === 0 &&
      !(gpu.mig ?? []).some(({pods = []}) => pods.length)).length, `${model} idle`);
  }
});

test('who waits, and for how much: API, metrics, command line, page', async () => {
  const {pods} = await server.get('pods?state=waiting');
  const names = pods.map(({namespace, name}) => `${namespace}/${name}`).sort();
  const queue = await rowsOf('queue');
  assert.deepEqual(queue.map((row) => `${row.NAMESPACE}/${row.NAME}`).sort(), names);
  assert.equal(metric('tranche_pods', {state: 'pending'}) + metric('tranche_pods', {state: 'claimed'}), names.length);
  assert.equal(metric('tranche_pending_workloads'), names.length);
  await onPage('queue', async (page) => {
    await page.locator('#queue-count', {hasText: new RegExp(`^${names.length}$`)}).waitFor();
  });
  const {quotas} = await server.get('quotas');
  const rows = new Map((await rowsOf('quota')).map((row) => [row.QUOTA, row]));
  // What no node here could hold is not waited for: sixteen GPUs on machines of eight.
  const never = new Set(['TooManyPerNode', 'TooLarge', 'WrongModel', 'BadAmount', 'MixedDialects']);
  for (const quota of quotas.filter(({namespaces}) => namespaces.length)) {
    const ofTeam = series.filter(({name, labels}) => name === 'tranche_pending_gpus' && labels.leaf === quota.name);
    assert.ok(ofTeam.length > 0, quota.name);
    const asked = ofTeam.filter(({labels}) => !never.has(labels.reason)).reduce((sum, {value}) => sum + value, 0);
    close(asked, quota.pending.gpus, `${quota.name} by its metric`);
    close(quota.pending.gpus, Number(rows.get(quota.name).PENDING), `${quota.name} on the command line`);
  }
  assert.ok(metric('tranche_pending_gpus', {leaf: 'vision', reason: 'TooManyPerNode'}) === 16, 'the scenario has such a pod');
});

test('what teams use: API, metrics, command line, page', async () => {
  const {quotas} = await server.get('quotas');
  const rows = await rowsOf('quota');
  for (const quota of quotas) {
    for (const {model, usedGpus, borrowedGpus} of quota.lines) {
      const row = rows.find((one) => one.QUOTA === quota.name && one.LINE === model);
      close(usedGpus, Number(row.USED), `${quota.name} ${model} on the command line`);
      close(borrowedGpus, Number(row.BORROWED), `${quota.name} ${model} on the command line`);
      const labels = {leaf: quota.name, model};
      const used = Math.max(metric('tranche_quota_used_gpus', {...labels, dim: 'compute'}), metric('tranche_quota_used_gpus', {...labels, dim: 'memory'}));
      close(usedGpus, used, `${quota.name} ${model} by its metric`);
    }
    const {namespaces} = quota;
    if (!namespaces.length) continue;
    const held = (await server.get(`pods?team=${quota.name}&state=placed`)).total;
    await onPage(`pods?team=${quota.name}&state=placed`, async (page) => {
      await page.locator('#pods-shown', {hasText: new RegExp(`^${held} of `)}).waitFor();
    });
  }
});

test('GPU-hours: API and command line; of the page views_test.mjs tells', async () => {
  const {rows, total} = await server.get('ledger');
  const told = await rowsOf('ledger', 'report');
  assert.equal(told.length, rows.length + 1);
  // Its sum has no model.
  close(Number(total), Number(told.at(-1).MODEL), 'the sum on the command line');
  for (const {leaf, model, gpuHours} of rows) {
    const row = told.find((one) => one.TEAM === (leaf || '-') && one.MODEL === model);
    close(Number(gpuHours), Number(row['GPU-HOURS']), `${leaf} ${model}`);
  }
});
