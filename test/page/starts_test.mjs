// When pods are expected to start, and the pages of gangs.

import assert from 'node:assert/strict';
import {after, before, test} from 'node:test';

import {launch, Visit} from './browser.mjs';
import {plannedWork} from './scenario.mjs';

let server;
let browser;
before(async () => {
  [server, browser] = await Promise.all([plannedWork(), launch()]);
});
after(async () => {
  await browser?.close();
  await server?.stop();
});

async function visit(view, walk) {
  const one = await Visit.open(browser, server, {view});
  try {
    await walk(one.page, one);
  } finally {
    await one.close();
  }
}

const isWaiting = ({state}) => state === 'pending' || state === 'claimed';
const waiting = async () => (await server.get('pods')).pods.filter(isWaiting);
const clockOf = (page, text) => page.evaluate((time) => new Intl.DateTimeFormat('en-GB',
  {hour: '2-digit', minute: '2-digit'}).format(new Date(time)), text);
const textOf = async (locator) => (await locator.innerText()).replaceAll(/\s+/g, ' ');
const row = (page, table, name) => page.locator(`${table} tbody tr`, {has: page.locator(`a:text-is("${name}")`)});

test('the queue tells when each pod is expected to start, or what stands in the way', () =>
  visit('queue', async (page, one) => {
    const pods = await waiting();
    const timed = pods.filter(({forecast}) => forecast.p50);
    assert.ok(timed.length >= 3 && timed.length < pods.length, JSON.stringify(pods));
    await page.locator('.queue-table tbody tr').nth(pods.length - 1).waitFor();
    for (const {name, forecast} of timed) {
      const text = await textOf(row(page, '.queue-table', name));
      assert.ok(text.includes(`${await clockOf(page, forecast.p50)} in `), `expected ${forecast.p50}, found ${text}`);
    }
    const patient = await textOf(row(page, '.queue-table', 'patient'));
    assert.match(patient, /not while others hold what it needs, and nobody knows how long team-a\/silent run/);
    assert.doesNotMatch(await page.locator('main').innerText(), /p\d0|quantile|median|null|undefined|Invalid/i);
    await one.shot('queue-starts');
    // Who has no time comes last, whichever way round.
    for (const [sorted, sign] of [['ascending', 1], ['descending', -1]]) {
      await page.getByRole('button', {name: /^Expected start/}).click();
      await page.locator(`th[aria-sort="${sorted}"]`, {hasText: 'Expected start'}).waitFor();
      const names = await page.locator('.queue-table tbody td:first-child a').allInnerTexts();
      const times = names.slice(0, timed.length).map((name) =>
        new Date(timed.find((pod) => pod.name === name).forecast.p50).getTime());
      assert.deepEqual(times, [...times].sort((a, b) => sign * (a - b)), sorted);
      assert.equal(names.at(-1), 'patient');
    }
    assert.match(page.url(), /sort=-start$/);
    await page.reload();
    await page.locator('th[aria-sort="descending"]', {hasText: 'Expected start'}).waitFor();
  }));

test('the list of all pods shows starts and gangs to who wants to see them', () =>
  visit('pods?state=waiting&cols=name,gang,start', async (page) => {
    const pods = await waiting();
    await page.locator('.pods-table tbody tr').nth(pods.length - 1).waitFor();
    for (const {name, asks, forecast} of pods) {
      const text = await textOf(row(page, '.pods-table', name));
      const gangs = await row(page, '.pods-table', name).locator(`a[href="#/gangs/team-a/${asks.gang}"]`).count();
      assert.equal(gangs > 0, asks.gang !== null, text);
      if (forecast.p50) assert.ok(text.includes(await clockOf(page, forecast.p50)), text);
    }
    await row(page, '.pods-table', 'next-ring-0').getByRole('link', {name: 'next-ring', exact: true}).click();
    await page.getByRole('heading', {name: 'next-ring', exact: true}).waitFor();
  }));

// What the server might say of a pod, as hours from now, and what its page makes of it.
const SENTENCES = [
  [{earliest: 1, p10: 2, p50: 5, p90: 200, because: 'expected in 20 of 21 rehearsals: 3 pods declare it'},
   [/, in 5 h/, /Likely between /, /eight chances in ten/, /Expected in 20 of 21 rehearsals: 3 pods declare it\./]],
  [{earliest: 1, p10: 2, p50: 5, p90: null, because: 'expected in 12 of 21 rehearsals: so'},
   [/, in 5 h/, /Likely from .* on, nobody knows until when/]],
  [{earliest: 5, p10: 5, p50: 5, p90: 5, because: 'expected by the ends that 2 pods declare'},
   [/, in 5 h\s*Expected by the ends that 2 pods declare\./]],
  [{earliest: -3, p10: -2, p50: -1, p90: 1, because: 'expected in 21 of 21 rehearsals: so'},
   [/Any moment now\s*Likely by /]],
  [{earliest: -4, p10: -3, p50: -2, p90: -1, because: 'expected in 21 of 21 rehearsals: so'},
   [/Any moment now\s*It is later than expected/]],
  [{earliest: 5, p10: null, p50: null, p90: null, because: 'not before its team is let in again, and not at once then: why'},
   [/Not before .*, in 5 h\s*Not before its team is let in again, and not at once then: why\./]],
  [{earliest: null, p10: null, p50: null, p90: null, because: 'not while a scheduling gate of somebody else is on it'},
   [/Expected start\s*Not while a scheduling gate of somebody else is on it\./]],
  [{earliest: null, p10: null, p50: null, p90: null, because: 'not at all: expected a number, found "4: x"'},
   [/Expected start\s*Not at all, as it asks now: expected a number, found "4: x"\./]],
  [{earliest: null, p10: null, p50: null, p90: null, because: 'not by anybody\'s end alone: why'},
   [/Expected start\s*Not by other work ending; something else has to change: why\./]],
  [undefined, [/No forecast yet/, /It came after the last forecast/]],
];

test('the page of a pod that waits says when it is expected, how sure that is and what it rests on', () =>
  visit('pods/team-a/after', async (page, one) => {
    const section = page.locator('#pod-page section', {has: page.getByRole('heading', {name: 'Expected start'})});
    const [own] = (await waiting()).filter(({name}) => name === 'after');
    await section.filter({hasText: own.forecast.because.slice(1)}).waitFor();
    assert.ok((await textOf(section)).includes(await clockOf(page, own.forecast.p50)));
    await one.shot('pod-start');
    const now = new Date((await server.get('reclaims')).now).getTime();
    const timeOf = (hours) => (typeof hours === 'number' ? new Date(now + hours * 3600000).toISOString() : hours);
    let said;
    await page.context().route('**/api/v1/pods/team-a/after', (route) => route.fulfill({json: {...own, forecast: said}}));
    for (const [forecast, wanted] of SENTENCES) {
      said = forecast && Object.fromEntries(Object.entries(forecast).map(([key, value]) => [key, timeOf(value)]));
      await page.reload();
      for (const words of wanted) await section.filter({hasText: words}).waitFor();
    }
  }));

test('a pod of a gang says what an autoscaler was asked for it, and answered', () =>
  visit('pods/team-a/next-ring-1', async (page, one) => {
    const pod = await server.get('pods/team-a/next-ring-1');
    assert.equal(pod.provisioning, undefined, 'nobody is asked here');
    assert.equal(await page.getByRole('heading', {name: 'Nodes for its gang'}).count(), 0);
    const {now} = await server.get('reclaims');
    await page.context().route('**/api/v1/pods/team-a/next-ring-1', (route) => route.fulfill({json: {...pod, provisioning: {
      request: 'tranche-f00d', state: 'not_yet', since: now,
      text: 'the autoscaler found no room for all of its pods, and tries again (CapacityNotFound: zone b is full)'}}}));
    await page.reload();
    const section = page.locator('#pod-page section', {has: page.getByRole('heading', {name: 'Nodes for its gang'})});
    await section.filter({hasText: 'The autoscaler found no room for all of its pods, and tries again (CapacityNotFound: zone b is full).'}).waitFor();
    assert.match(await textOf(section), /ProvisioningRequest tranche-f00d, since .*\d\d:\d\d/);
    await one.shot('pod-provisioning');
  }));

test('a gang that waits has a page: how far it is, why, and its pods', () =>
  visit('pods/team-a/next-ring-1', async (page, one) => {
    await page.locator('#pod-page a:text-is("next-ring")').click();
    await page.getByRole('heading', {name: 'next-ring', exact: true}).waitFor();
    assert.match(page.url(), /#\/gangs\/team-a\/next-ring$/);
    await page.reload();
    await page.locator('#gang-page table').waitFor();
    const gang = (await server.get('gangs')).gangs.find(({name}) => name === 'next-ring');
    const members = (await waiting()).filter(({asks}) => asks.gang === 'next-ring');
    assert.equal(members.length, 2);
    const text = await textOf(page.locator('#gang-page'));
    for (const word of [gang.state, `${gang.size} pods at once`, '2 waiting', gang.text,
                        await clockOf(page, members[0].forecast.p50)]) {
      assert.ok(text.includes(word), `expected "${word}", found "${text}"`);
    }
    for (const {name, reason} of members) assert.ok((await textOf(row(page, '#gang-page', name))).includes(reason.text));
    await one.shot('gang-waits');
    await page.locator('#gang-page table a').first().click();
    await page.getByRole('heading', {name: members[0].name, exact: true}).waitFor();
    await page.goBack();
    await page.getByRole('heading', {name: 'next-ring', exact: true}).waitFor();
    await page.evaluate(() => { location.hash = '#/queue'; });
    await page.locator('.queue-table a[href="#/gangs/team-a/next-ring"]').first().click();
    await page.getByRole('heading', {name: 'next-ring', exact: true}).waitFor();
  }));

test('a gang that runs is shown with its nodes and pods, and nobody else', () =>
  visit('gangs/team-a/ring', async (page, one) => {
    const {nodes: [node]} = await server.get('gangs/team-a/ring');
    for (const name of ['ring-0', 'ring-1']) {
      const text = await textOf(row(page, '#gang-page', name));
      for (const word of ['running', node, '4 GPUs']) assert.ok(text.includes(word), text);
    }
    await one.shot('gang-runs');
    const names = await page.locator('#gang-page table a[href^="#/pods/"]').allInnerTexts();
    assert.deepEqual(names, ['ring-0', 'ring-1']);
    await page.locator('#gang-page a[href="#/pods/team-a/ring-0"]').click();
    await page.locator('#pod-page a[href="#/gangs/team-a/ring"]').waitFor();
    await page.goBack();
    await page.locator('#gang-page').getByRole('link', {name: node, exact: true}).first().click();
    await page.getByRole('heading', {name: node, exact: true}).waitFor();
  }));
