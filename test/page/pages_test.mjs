// Lists and pages of one thing: what they show, that their addresses can be sent, and what they say
// when the server does not answer.

import assert from 'node:assert/strict';
import {after, before, test} from 'node:test';

import {brokenWords, launch, Visit} from './browser.mjs';
import {busyDay, hostileCluster, largeFleet} from './scenario.mjs';
import {pod} from './server.mjs';

let server;
let browser;
before(async () => {
  [server, browser] = await Promise.all([busyDay(), launch()]);
});
after(async () => {
  await browser?.close();
  await server?.stop();
});

async function visit(options, walk) {
  const one = await Visit.open(browser, options.server ?? server, options);
  try {
    await walk(one.page, one);
  } finally {
    await one.close();
  }
}

const names = (page, table) => page.locator(`${table} tbody td:first-child a`).allInnerTexts();
const isWaiting = ({state}) => state === 'pending' || state === 'claimed';

test('all pods are listed, and what is searched, chosen and sorted is in the address', () =>
  visit({view: 'pods'}, async (page, one) => {
    const {pods} = await server.get('pods');
    await page.locator('#pods-shown', {hasText: `${pods.length} pods`}).waitFor();
    assert.deepEqual(await names(page, '.pods-table'), pods.slice(0, 50).map(({name}) => name));
    await page.getByRole('button', {name: 'Next'}).click();
    await page.getByText('page 2 of 2').waitFor();
    assert.deepEqual(await names(page, '.pods-table'), pods.slice(50).map(({name}) => name));
    await page.locator('#pod-state').selectOption('placed');
    await page.locator('#pod-text').fill('LANGUAGE h100-b');
    const found = pods.filter((each) => !isWaiting(each) && each.leaf === 'language' && each.node === 'h100-b');
    assert.ok(found.length > 1);
    await page.locator('#pods-shown', {hasText: `${found.length} of ${pods.length} pods`}).waitFor();
    await page.getByRole('button', {name: 'Pod', exact: true}).click();
    await page.locator('th[aria-sort="ascending"]').waitFor();
    await page.getByRole('button', {name: /^Pod/}).click();
    await page.locator('th[aria-sort="descending"]').waitFor();
    assert.deepEqual(await names(page, '.pods-table'), found.map(({name}) => name).reverse());
    await page.getByText('Columns', {exact: true}).click();
    await page.getByLabel('Class').check();
    await page.getByRole('columnheader', {name: 'Class'}).waitFor();
    await one.shot('pods');
    const before = await page.locator('.pods-table').innerText();
    await page.reload();
    await page.locator('.pods-table').waitFor();
    assert.equal(await page.locator('.pods-table').innerText(), before, 'the address keeps all of it');
    assert.equal(await page.locator('#pod-text').inputValue(), 'LANGUAGE h100-b');
  }));

test('gangs are listed, searched, sorted and lead to their pages', () => visit({view: 'gangs'}, async (page, one) => {
  const {gangs} = await server.get('gangs');
  assert.ok(gangs.length > 0);
  await page.locator('#gangs-shown', {hasText: gangs.length === 1 ? '1 gang' : `${gangs.length} gangs`}).waitFor();
  assert.deepEqual((await names(page, '.gangs-table')).sort(), gangs.map(({name}) => name).sort());
  await page.locator('.gangs-table', {hasText: 'wide'}).getByText('0 of 2').waitFor();
  await page.locator('.gangs-table').getByText('expected room for 2 pods at once, found room for 1').waitFor();
  await one.shot('gangs');
  await page.getByLabel('Search').locator('visible=true').fill('no such gang');
  await page.getByText('No gang matches').waitFor();
  assert.match(page.url(), /#\/gangs\?q=no\+such\+gang/);
  await page.reload();
  await page.getByText('No gang matches').waitFor();
  await page.getByLabel('Search').locator('visible=true').fill('wide');
  await page.locator('.gangs-table a:text-is("wide")').click();
  await page.getByRole('heading', {name: 'wide'}).waitFor();
  await page.getByRole('link', {name: 'Gangs'}).first().click();
  await page.locator('#view-gangs:visible').waitFor();
}));

test('a running pod has a page that leads to its node and team', () => visit({view: 'pods'}, async (page, one) => {
  const {pods} = await server.get('pods');
  const held = pods.find(({knowledge, devices}) => knowledge === 'exact' && devices.length);
  await page.locator('#pod-text').fill(held.name);
  await page.locator(`.pods-table a:text-is("${held.name}")`).click();
  await page.getByRole('heading', {name: held.name, exact: true}).waitFor();
  assert.match(page.url(), new RegExp(`#/pods/${held.namespace}/${held.name}$`));
  await page.locator('.devices-table', {hasText: held.devices[0].uuid}).waitFor();
  await one.shot('pod');
  await page.reload();
  await page.locator('.devices-table').getByRole('link', {name: `GPU ${held.devices[0].index}`}).click();
  await page.getByRole('heading', {name: held.node, exact: true}).waitFor();
  await page.locator('.gpus-table tr.open', {hasText: held.devices[0].uuid}).waitFor();
  await page.goBack();
  await page.getByRole('link', {name: held.leaf, exact: true}).click();
  await page.getByRole('heading', {name: held.leaf, exact: true}).waitFor();
  await page.goBack();
  await page.getByRole('heading', {name: held.name, exact: true}).waitFor();
}));

test('GPUs of a pod lead to their place on the node, also where the nodes come last', async () => {
  const {pods} = await server.get('pods');
  const held = pods.find(({knowledge, devices}) => knowledge === 'exact' && devices.length);
  await visit({view: `pods/${held.namespace}/${held.name}`}, async (page) => {
    let letNodesCome;
    const nodesMayCome = new Promise((resolve) => { letNodesCome = resolve; });
    await page.context().route('**/api/v1/nodes*', async (route) => {
      await nodesMayCome;
      await route.continue();
    });
    // Only the first answer about the pod comes: nothing else draws the page anew.
    let asked = 0;
    await page.context().route('**/api/v1/pods/*/*', async (route) => {
      asked += 1;
      if (asked === 1) await route.continue();
    });
    await page.reload();
    const gpu = page.locator('.devices-table').getByRole('link', {name: `GPU ${held.devices[0].index}`});
    await gpu.waitFor();
    assert.match(await gpu.getAttribute('href'), new RegExp(`#/nodes/${held.node}$`));
    // Colours, which draw the page anew, have come by then.
    await page.waitForTimeout(1000);
    letNodesCome();
    await page.locator(`.devices-table a[href*="${held.node}?gpu="]`).first().waitFor();
  });
});

test('a waiting pod has a page that says why', () => visit({view: 'pods/team-language/pretrain-next'}, async (page) => {
  const explained = await server.get('explain/team-language/pretrain-next');
  await page.locator('.advice-line', {hasText: explained.advice}).waitFor();
  const text = (await page.locator('#pod-page').innerText()).replaceAll(/\s+/g, ' ');
  for (const word of [explained.reason.text, explained.reason.detail, '8 GPUs, h100']) {
    assert.ok(text.includes(word), `expected "${word}", found "${text}"`);
  }
  await page.getByRole('button', {name: 'What if …'}).click();
  assert.equal(await page.getByRole('dialog').getByLabel('How many').inputValue(), '8');
}));

test('a node has a page with its GPUs and who is on them', () => visit({view: 'nodes/h100-b'}, async (page) => {
  const {nodes} = await server.get('nodes');
  const node = nodes.find(({name}) => name === 'h100-b');
  await page.locator('.gpus-table tbody tr').nth(node.gpus.length - 1).waitFor();
  for (const [at, gpu] of node.gpus.entries()) {
    const row = await page.locator('.gpus-table tbody tr').nth(at).innerText();
    for (const held of gpu.pods) assert.ok(row.includes(held.pod), `expected ${held.pod}, found ${row}`);
    if (gpu.pods.length === 0) assert.ok(row.includes('nobody'), row);
  }
}));

test('a team has a page with what it owns, runs, waits for and may lose', () =>
  visit({view: 'teams/language'}, async (page) => {
    const {pods} = await server.get('pods');
    const own = pods.filter(({leaf}) => leaf === 'language');
    const {reclaims} = await server.get('reclaims');
    await page.getByRole('heading', {name: 'language', exact: true}).waitFor();
    await page.locator('#team-page-budgets .uplot canvas').waitFor();
    const section = async (title) => (await page.locator('#team-page section', {
      has: page.getByRole('heading', {name: title, exact: true})}).innerText()).replaceAll(/\s+/g, ' ');
    const [waits, runs] = [await section('Waits'), await section('Runs')];
    for (const each of own) {
      const text = isWaiting(each) ? waits : runs;
      assert.ok(text.includes(each.name), `expected ${each.name}, found ${text}`);
    }
    const risky = own.filter(({quotaState}) => quotaState === 'borrowed');
    assert.ok(risky.length > 0);
    const risk = await section('At risk');
    for (const each of risky) assert.ok(risk.includes(each.name), risk);
    assert.ok(reclaims.some(({victims}) => victims.some(({leaf}) => leaf === 'language')));
    assert.ok((await section('Reclaims of the last day')).includes('train-next'));
    assert.match(await section('What it owns and uses'), /9 of 8 owned 1 borrowed/);
    assert.match(waits, /Expected start .* in \d+ (h|days).*, likely between /);
  }));

test('work that does nothing is named where its team looks', () => visit({view: 'teams/language'}, async (page, one) => {
  const {pods} = await server.get('pods');
  const {now} = await server.get('reclaims');
  const [sleeps, naps] = pods.filter(({leaf, state}) => leaf === 'language' && state === 'bound');
  const since = (minutes) => new Date(new Date(now) - minutes * 60_000).toISOString();
  const use = new Map([[sleeps.name, {idleSince: since(150)}], [naps.name, {idleSince: since(4)}]]);
  const used = (pod) => (use.has(pod.name) ? {...pod, use: use.get(pod.name)} : pod);
  await page.context().route(/\/api\/v1\/pods(\?.*)?$/, async (route) => {
    const response = await route.fetch();
    const body = await response.json();
    await route.fulfill({response, json: {...body, pods: body.pods.map(used)}});
  });
  await page.context().route(`**/api/v1/pods/${sleeps.namespace}/${sleeps.name}`, (route) => route.fulfill({json:
    {...sleeps, use: {percent: 0, measuredAt: now, idleSince: since(150)}, rightSize: {
      text: 'holds 1 GPU; in 9 days its busiest hour was 4 % and the most memory 6.0 GiB: 1g.10gb would do, and leave 0.86 GPUs to others',
      request: {key: 'nvidia.com/mig-1g.10gb', value: '1'}}}}));
  await page.reload();
  const section = page.locator('#team-page section', {has: page.getByRole('heading', {name: 'Does nothing', exact: true})});
  await section.waitFor();
  const text = (await section.innerText()).replaceAll(/\s+/g, ' ');
  assert.match(text, new RegExp(`1 pod leaves .* unused: ${sleeps.name} for 2 h 30 min`));
  assert.ok(!text.includes(naps.name), text);
  await one.shot('team-idle');
  await section.getByRole('link', {name: 'All by time'}).click();
  const first = page.locator('.pods-table tbody tr').first();
  await first.filter({hasText: sleeps.name}).waitFor();
  assert.match(await first.innerText(), /2 h 30 min/);
  await first.getByRole('link', {name: sleeps.name}).click();
  await page.locator('#pod-page').filter({hasText: /idle for 2 h 30 min, since/}).waitFor();
  await page.locator('#pod-page', {hasText: '1g.10gb would do, and leave 0.86 GPUs to others. Ask for nvidia.com/mig-1g.10gb: 1.'}).waitFor();
  await one.shot('pod-right-size');
}));

test('a reclaim has a page that leads to all it concerns, and back', () => visit({view: 'reclaims'}, async (page, one) => {
  const {reclaims: [done]} = await server.get('reclaims');
  const [victim] = done.victims;
  const heading = page.getByRole('heading', {name: done.name, exact: true});
  await page.locator('.reclaim-table tbody td:first-child a').first().click();
  await heading.waitFor();
  assert.match(page.url(), new RegExp(`#/reclaims/${done.name}$`));
  await page.reload();
  await heading.waitFor();
  const text = (await page.locator('#reclaim-page').innerText()).replaceAll(/\s+/g, ' ');
  const seconds = (new Date(victim.goneAt) - new Date(victim.evictedAt)) / 1000;
  for (const word of ['done', `${done.for.namespace}/${done.for.name}, has its place`, done.node, done.leaf, `(rule ${done.rule})`,
                      'others give back what they borrowed', done.progress, victim.pod, `gone after ${seconds} s`,
                      'the least costly there was', '4 GPU-h']) {
    assert.ok(text.includes(word), `expected "${word}", found "${text}"`);
  }
  await one.shot('reclaim');
  for (const pod of [`${done.for.namespace}/${done.for.name}`, victim.pod]) {
    assert.ok(await page.locator(`#reclaim-page a[href="#/pods/${pod}"]`).count() > 0, pod);
  }
  for (const address of [`nodes/${done.node}`, `teams/${done.leaf}`, `teams/${victim.leaf}`]) {
    assert.ok(await page.locator(`#reclaim-page a[href="#/${address}"]`).count() > 0, address);
  }
  await page.locator(`#reclaim-page a[href="#/pods/${done.for.namespace}/${done.for.name}"]`).first().click();
  await page.getByRole('heading', {name: done.for.name, exact: true}).waitFor();
  await page.locator(`#pod-page a[href="#/reclaims/${done.name}"]`).click();
  await heading.waitFor();
  // As it was sent before reclaims had pages.
  await page.evaluate((name) => { location.hash = `#/reclaims?open=${name}`; }, done.name);
  await page.locator('.reclaim-table .victims-table', {hasText: victim.pod}).waitFor();
}));

// What the server might say of the reclaim of that day, and what its page makes of it.
const RECLAIMS = [
  [{phase: 'Evicting', finishedAt: null, reservedAt: null, members: [{placed: false}], victims: [{gone: false, goneAt: null}]},
   [/making room/, /, waits for it/, /not yet, it goes on for/, /ending for/]],
  [{phase: 'Planned', finishedAt: null, reservedAt: null, victims: [{gone: false, goneAt: null, evictedAt: null}]},
   [/nobody was told yet/, /not told yet/]],
  [{phase: 'Aborted', reason: 'VictimStuck', members: [{placed: false}], victims: [{gone: false, goneAt: null, gang: 'wide',
    pod: 'team-platform/wide-7'}], search: {result: 'heuristic'}},
   [/Why: a pod that was told to stop did not end\./, /, did not get it/, /stayed/, /gang wide/, /a less costly one may exist/]],
  [{rule: 'Gang', for: {kind: 'Gang', namespace: 'team-platform', name: 'wide'}, members: null},
   [/gang wide/, /the rest of it goes too \(rule Gang\)/]],
  [{rule: 'Drain', for: {kind: 'GPUBudget', name: 'language-monthly'}, members: null},
   [/GPUBudget language-monthly/, /a budget is used up/]],
];

test('a reclaim says how far it came, and a gang what was taken from it', () => visit({view: 'reclaims'}, async (page) => {
  const {reclaims: [done], now} = await server.get('reclaims');
  let said = done;
  await page.context().route('**/api/v1/reclaims', (route) => route.fulfill({json: {reclaims: [said], now}}));
  await page.context().route('**/api/v1/reclaims/*', (route) => route.fulfill({json: said}));
  const merged = (list, changes) => (changes === null ? [] : list.map((one, at) => ({...one, ...changes?.[at]})));
  for (const [changes, wanted] of RECLAIMS) {
    said = {...done, ...changes, members: merged(done.members, changes.members), victims: merged(done.victims, changes.victims)};
    await page.evaluate((name) => { location.hash = `#/reclaims/${name}`; }, done.name);
    for (const words of wanted) await page.locator('#reclaim-page').filter({hasText: words}).waitFor();
    const ofGang = changes.rule === 'Gang' || changes.victims?.[0].gang === 'wide';
    if (!ofGang) continue;
    await page.locator('#reclaim-page a[href="#/gangs/team-platform/wide"]').click();
    await page.locator(`#gang-page a[href="#/reclaims/${done.name}"]`).waitFor();
  }
}));

test('what is not there is said', () => visit({view: 'fleet'}, async (page, one) => {
  one.expected.push('404');
  const rows = {'pods/team-language/nobody': 'No pod team-language/nobody is known',
                'nodes/nothing': 'No node nothing is known', 'teams/nobody': 'No team nobody is known',
                'gangs/team-language/nobody': 'No gang team-language/nobody is known',
                'reclaims/nothing': 'No reclaim nothing is known'};
  for (const [address, text] of Object.entries(rows)) {
    await page.evaluate((hash) => { location.hash = hash; }, `#/${address}`);
    await page.getByText(text).waitFor();
  }
  await page.evaluate(() => { location.hash = '#/nowhere/%zz'; });
  await page.getByRole('heading', {name: 'Fleet', exact: true}).waitFor();
}));

test('filters, reasons, open rows and days survive a reload', () => visit({view: 'queue'}, async (page) => {
  await page.locator('#queue-text').fill('language');
  await page.getByRole('button', {name: 'Why team-language/pretrain-next waits'}).click();
  await page.locator('.advice-line').waitFor();
  await page.locator('.reasons button', {hasText: 'could borrow'}).click();
  assert.match(page.url(), /q=language.*open=team-language\/pretrain-next/);
  await page.reload();
  await page.locator('.advice-line').waitFor();
  assert.deepEqual(await page.locator('.queue-table tr:not(.detail) > td:first-child a').allInnerTexts(), ['pretrain-next']);
  await page.evaluate(() => { location.hash = '#/ledger?from=2026-01-01&to=2026-01-31'; });
  await page.locator('#ledger-from').waitFor();
  assert.equal(await page.locator('#ledger-from').inputValue(), '2026-01-01');
  await page.getByText('Nobody used a GPU in this time').waitFor();
  await page.getByRole('button', {name: 'Today'}).click();
  const url = page.url();
  assert.match(url, /from=\d{4}-\d\d-\d\d&to=\d{4}-\d\d-\d\d$/);
  await page.evaluate(() => { location.hash = '#/reclaims'; });
  await page.locator('.reclaim-table .opens').first().click();
  await page.locator('.victims-table').waitFor();
  await page.reload();
  await page.locator('.victims-table').waitFor();
}));

test('what has ended is listed from the ledger', () => visit({view: 'pods'}, async (page, one) => {
  await page.locator('#pod-state').selectOption('ended');
  await page.locator('.ended-table').waitFor();
  assert.match(page.url(), /state=ended/);
  const {at} = await server.get('ledger/held');
  const day = new Date(new Date(at) - 86400000).toISOString();
  const ended = (await server.get(`ledger/held?from=${day}`)).rows.filter(({until}) => until)
    .sort((a, b) => (a.until < b.until ? 1 : -1));
  assert.ok(ended.length > 0, 'expected that some work has ended on this day');
  assert.equal(await page.locator('.ended-table tbody tr').count(), ended.length);
  const first = (await page.locator('.ended-table tbody tr').first().innerText()).replaceAll(/\s+/g, ' ');
  for (const text of [ended[0].pod, ended[0].namespace, ended[0].model, ended[0].node]) assert.ok(first.includes(text), first);
  assert.equal(await page.locator('#pod-quota').isVisible(), false, 'of what has ended nobody says what it was');
  await one.shot('ended');
  await page.locator('#pod-text').fill(ended[0].pod);
  await page.locator('#pods-shown', {hasText: `of ${ended.length} pod`}).waitFor();
  await page.reload();
  await page.locator('.ended-table').waitFor();
  assert.equal(await page.locator('#pod-text').inputValue(), ended[0].pod);
  await page.locator('#pod-text').fill('');
  await page.locator('#pod-state').selectOption('');
  await page.locator('.pods-table').waitFor();
  assert.equal(await page.locator('#pod-quota').isVisible(), true);
}));

test('nodes are grouped and ordered as asked', () => visit({view: 'fleet?group=model'}, async (page, one) => {
  const {nodes} = await server.get('nodes');
  await page.locator('.group-head').first().waitFor();
  const models = [...new Set(nodes.map(({model}) => model))].sort((a, b) => a.localeCompare(b, 'en', {numeric: true}));
  assert.deepEqual(await page.locator('.group-head h3').allInnerTexts(), models);
  await one.shot('fleet-by-model');
  await page.locator('#filter-group').selectOption('pool');
  const pools = [...new Set(nodes.map(({pool}) => pool ?? 'in no pool'))].sort();
  await page.getByRole('heading', {name: pools[0], exact: true}).waitFor();
  assert.deepEqual(await page.locator('.group-head h3').allInnerTexts(), pools);
  await page.locator('#filter-group').selectOption('');
  await page.locator('#filter-order').selectOption('fullest');
  await page.locator('.group-head').first().waitFor({state: 'detached'});
  assert.match(page.url(), /order=fullest/);
  const first = await page.locator('.node[aria-posinset="1"]').getAttribute('aria-label');
  assert.equal(first, 'h100-a');
  await page.locator('#filter-order').selectOption('emptiest');
  await page.locator('.node[aria-posinset="1"][aria-label="v100-mesh"]').waitFor();
  await page.locator('#filter-group').selectOption('domain');
  await page.getByRole('heading', {name: 'no NVLink domain known', exact: true}).waitFor();
}));

test('nodes for which pods wait come first where that is asked for', () => visit({view: 'fleet'}, async (page) => {
  // It has a place since the scheduler asked, and has not come yet.
  const coming = pod('team-platform', 'coming', {limits: {'nvidia.com/gpu': 1}, annotations: {'tranche.dev/model': 'v100'}});
  await server.apply(coming);
  const nodes = (await server.get('nodes')).nodes.map(({name}) => name);
  await server.call('POST', '/scheduler/filter', {Pod: coming, Nodes: null, NodeNames: nodes});
  const {node, state} = await server.get('pods/team-platform/coming');
  assert.deepEqual([node, state], ['v100-mesh', 'claimed']);
  // In this view pods are asked for every half minute.
  await page.reload();
  await page.locator('#filter-order').selectOption('awaited');
  await page.locator('.node[aria-posinset="1"][aria-label="v100-mesh"]').waitFor();
  await server.remove('Pod', 'team-platform', 'coming');
  await server.advance(60);
}));

test('on a phone the header is one line, and rows are cards', () =>
  visit({view: 'queue', width: 390, height: 844}, async (page) => {
    await page.locator('.queue-table').waitFor();
    assert.ok((await page.locator('header.top').boundingBox()).height < 60);
    const row = page.locator('.queue-table tbody tr').first();
    const cells = await row.locator('td').evaluateAll((list) => list.map((cell) => cell.getBoundingClientRect().left));
    assert.equal(new Set(cells).size, 1, 'cells stand below each other');
    assert.equal(await page.getByRole('cell').first().isVisible(), true, 'screen readers still hear of cells');
    assert.deepEqual(await brokenWords(page), []);
    await page.getByLabel('Sort by').selectOption('-waits');
    assert.match(page.url(), /sort=-waits/);
  }));

const noFinger = process.env.FIREFOX ? 'WebDriver BiDi makes no touch screen of Firefox' : false;
test('a finger is told of a GPU first, and opens its node next', {skip: noFinger}, () =>
  visit({view: 'fleet', width: 390, height: 844, hasTouch: true, isMobile: true}, async (page) => {
    const gpu = page.locator('.gpu[data-node="h100-a"]').first();
    await gpu.tap();
    await page.locator('#tip', {hasText: 'h100-a'}).waitFor();
    assert.match(page.url(), /#\/fleet$/);
    await gpu.tap();
    await page.getByRole('heading', {name: 'h100-a', exact: true}).waitFor();
  }));

test('names that look like markup stay text, everywhere', async () => {
  const {server: hostile, markup} = await hostileCluster();
  try {
    const gang = `gangs/team-a/${encodeURIComponent(markup)}`;
    for (const view of ['fleet', 'pods', 'pods?cols=name,gang,start', 'queue?open=team-a/waits', 'gangs', 'events', 'pods/team-a/waits',
                        'pods/team-a/runs', gang, 'nodes/odd', 'teams', 'teams/alpha']) {
      await visit({view, server: hostile}, async (page) => {
        await page.locator('#contact[data-state="live"]').waitFor();
        await page.waitForTimeout(600);
        assert.equal(await page.locator('main img, main script, main b').count(), 0, view);
        if (view.startsWith('pods/team-a/waits')) assert.ok((await page.locator('#pod-page').innerText()).includes(markup));
        if (view === gang) await page.getByRole('heading', {name: markup, exact: true}).waitFor();
      });
    }
  } finally {
    await hostile.stop();
  }
});

test('eight teams are coloured, the rest is grey, and colours stay', async () => {
  const large = await largeFleet(40, 12);
  try {
    const coloursOf = async (page) => {
      await page.locator('.legend li button').nth(7).waitFor();
      return page.locator('.legend li button').evaluateAll((list) =>
        list.map((entry) => [entry.innerText, entry.querySelector('.swatch').className]));
    };
    await visit({view: 'fleet', server: large}, async (page) => {
      const first = await coloursOf(page);
      assert.equal(first.length, 8);
      assert.equal(new Set(first.map(([, look]) => look)).size, 8);
      await page.getByText('4 others').waitFor();
      for (let round = 0; round < 3; ++round) {
        await page.reload();
        assert.deepEqual(await coloursOf(page), first);
      }
    });
  } finally {
    await large.stop();
  }
});

test('a source that fails is named, and the rest goes on', () => visit({view: 'fleet'}, async (page, one) => {
  one.expected.push('500');
  await page.locator('#contact[data-state="live"]').waitFor();
  await page.context().route('**/api/v1/quotas', (route) => route.fulfill({status: 500, body: '{}'}));
  await page.locator('#stale', {hasText: /Quotas are as of \d\d:\d\d:\d\d: the server answered 500/}).waitFor();
  const states = new Set();
  for (let step = 0; step < 12; ++step) {
    states.add(await page.locator('#contact').getAttribute('data-state'));
    await page.waitForTimeout(250);
  }
  assert.deepEqual([...states], ['lost'], 'other answers do not make it live');
  await page.context().unroute('**/api/v1/quotas');
  await page.locator('#contact[data-state="live"]').waitFor();
  assert.equal(await page.locator('#stale').isVisible(), false);
}));

test('answers and files are compressed', async () => {
  for (const path of ['/ui/app.js', '/ui/style.css', '/api/v1/nodes', '/api/v1/pods']) {
    const reply = await fetch(server.url + path, {headers: {'Accept-Encoding': 'gzip'}});
    assert.equal(reply.headers.get('content-encoding'), 'gzip', path);
    const head = await fetch(server.url + path, {method: 'HEAD', headers: {'Accept-Encoding': 'gzip'}});
    assert.equal(head.status, 200);
    assert.equal(head.headers.get('content-length'), reply.headers.get('content-length'));
    assert.equal(await head.text(), '');
  }
});

test('a page of one thing asks for that alone', () => visit({view: 'nodes/h100-a'}, async (page) => {
  await page.locator('.gpus-table').waitFor();
  await page.waitForTimeout(1500);
  const asked = [];
  page.on('request', (request) => asked.push(new URL(request.url()).pathname));
  await server.apply(pod('team-vision', 'passing', {limits: {'nvidia.com/gpu': 64}}));
  await page.waitForTimeout(5000);
  await server.remove('Pod', 'team-vision', 'passing');
  await server.advance(2);
  assert.ok(asked.includes('/api/v1/nodes/h100-a'), String(asked));
  assert.ok(!asked.includes('/api/v1/pods') && !asked.includes('/api/v1/nodes'), String(asked));
}));

test('events are listed, the newest first, and go on', () => visit({view: 'events'}, async (page, one) => {
  const {events} = await server.get('events?limit=5000');
  assert.ok(events.length > 50);
  await page.locator('#events-shown', {hasText: `${events.length} events`}).waitFor();
  const shown = () => page.locator('.events-table tbody td:nth-child(3) a').allInnerTexts();
  const newest = [...events].reverse().filter(({name}) => name).slice(0, 10).map(({name}) => name);
  assert.deepEqual((await shown()).slice(0, 10), newest);
  await one.shot('events');
  const asked = [];
  page.on('request', (request) => asked.push(request.url()));
  const gpus = {'nvidia.com/gpu': '1'};
  await server.apply({apiVersion: 'v1', kind: 'Node', status: {
    capacity: gpus, allocatable: gpus, conditions: [{type: 'Ready', status: 'True'}]},
  metadata: {name: 'spare', labels: {'nvidia.com/gpu.product': 'Tesla-T4', 'nvidia.com/gpu.memory': '15360', 'nvidia.com/gpu.count': '1'}}});
  const brief = pod('team-vision', 'brief', {limits: gpus});
  await server.apply(brief);
  assert.equal(await server.schedule(brief, ['spare']), 'spare');
  await server.remove('Pod', 'team-vision', 'brief');
  await server.advance(2);
  await server.remove('Node', undefined, 'spare');
  const newer = (await server.get(`events?since=${Math.max(...events.map(({id}) => id))}`)).events;
  assert.ok(newer.length > 0, 'expected that something happened');
  await page.locator('#events-shown', {hasText: `${events.length + newer.length} events`}).waitFor({timeout: 15000});
  assert.ok(asked.filter((url) => url.includes('/api/v1/events')).every((url) => /since=\d+/.test(url)), String(asked));
  await page.locator('#event-kind').selectOption('Ended');
  await page.locator('#events-shown', {hasText: / of /}).waitFor();
  assert.match(page.url(), /kind=Ended/);
  const kinds = await page.locator('.events-table tbody .chip').allInnerTexts();
  assert.deepEqual([...new Set(kinds)], ['ended']);
}));
