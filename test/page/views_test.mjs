// Each view shows what the server says: the numbers on the page against the API's.

import assert from 'node:assert/strict';
import {after, before, test} from 'node:test';

import {addressOf, brokenWords, downloaded, launch, VIEWS, Visit} from './browser.mjs';
import {busyDay} from './scenario.mjs';
import {pod, Server} from './server.mjs';

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

const shown = async (page, selector) => (await page.locator(selector).innerText()).replaceAll(/\s+/g, ' ');

test('the fleet shows every node and GPU, and its sums', () => visit({view: 'fleet'}, async (page) => {
  const {nodes} = await server.get('nodes');
  const {pods} = await server.get('pods');
  await page.locator('.node').nth(nodes.length - 1).waitFor();
  assert.equal(await page.locator('.node').count(), nodes.length);
  assert.equal(await page.locator('.gpu').count(), nodes.reduce((sum, node) => sum + node.gpus.length, 0));
  const waiting = pods.filter(({state}) => state === 'pending' || state === 'claimed').length;
  await page.locator('#queue-count', {hasText: String(waiting)}).waitFor();
  const sums = await shown(page, '#summary');
  assert.match(sums, new RegExp(`Pods placed ${pods.length - waiting} Pods waiting ${waiting}`));
  assert.match(sums, /GPUs 40 on 6 nodes/);
}));

test('a GPU tells its pod, team and share', () => visit({view: 'fleet'}, async (page, one) => {
  const {nodes} = await server.get('nodes');
  const {pods} = await server.get('pods');
  const node = nodes.find(({name}) => name === 't4-hami');
  const [held] = node.gpus[0].pods;
  const entry = pods.find(({namespace, name}) => `${namespace}/${name}` === held.pod);
  await page.locator('.gpu[data-node="t4-hami"][data-gpu="0"]').hover();
  const tip = page.locator('#tip', {hasText: held.pod.split('/')[1]});
  await tip.waitFor();
  const text = await tip.innerText();
  assert.ok(text.includes(entry.leaf), `expected the team ${entry.leaf}, found ${text}`);
  assert.ok(text.includes(`${held.milli / 10} %`), `expected the share, found ${text}`);
  await one.shot('fleet-hover');
}));

test('slices and NVLink groups are drawn where the server knows of them', () =>
  visit({view: 'fleet'}, async (page) => {
    const {nodes} = await server.get('nodes');
    for (const node of nodes) {
      const card = page.locator(`.node[aria-label="${node.name}"]`);
      await card.waitFor();
      assert.equal(await card.locator('.bracket').count(), node.nvlink?.groups.length ?? 0, node.name);
      const slices = node.gpus.flatMap((gpu) => gpu.mig ?? []);
      assert.equal(await card.locator('.gpu.mig .part').count(), slices.length, node.name);
      assert.equal(await card.locator('.gpu.mig .part.slot').count(),
                   slices.filter(({pod: user}) => user === null).length, node.name);
    }
    assert.ok(nodes.some((node) => node.nvlink?.groups.length), 'expected a node with NVLink groups');
  }));

test('filters narrow the fleet and live in the address', () => visit({view: 'fleet?model=t4'}, async (page) => {
  await page.locator('#shown', {hasText: '1 of 6 nodes'}).waitFor();
  await page.locator('#filter-model').selectOption('h100');
  await page.locator('#shown', {hasText: '2 of 6 nodes'}).waitFor();
  assert.match(page.url(), /#\/fleet\?model=h100$/);
  await page.locator('#filter-node').fill('no such node');
  await page.getByText('No node matches the filters').waitFor();
}));

test('teams show owned, used, borrowed and lent GPUs', () => visit({view: 'teams'}, async (page, one) => {
  const {quotas} = await server.get('quotas');
  const teams = quotas.filter(({name}) => !quotas.some(({parent}) => parent === name));
  assert.ok(teams.some(({lines}) => lines.some(({borrowedGpus}) => borrowedGpus > 0)));
  for (const team of teams) {
    const text = await shown(page, `section[aria-label="Team ${team.name}"]`);
    for (const line of team.lines) {
      const words = [`${line.model} ${line.usedGpus} of ${line.nominalGpus} owned`];
      if (line.borrowedGpus > 0) words.push(`${line.borrowedGpus} borrowed`);
      if (line.lentGpus > 0) words.push(`${line.lentGpus} lent`);
      for (const word of words) assert.ok(text.includes(word), `expected "${word}", found "${text}"`);
    }
  }
  const flow = await page.locator('.flow svg').getAttribute('aria-label');
  assert.equal(flow, '1 h100 GPUs are lent by vision and 1 borrowed by language, through org');
  await page.locator('.budget .uplot canvas').waitFor();
  await one.shot('teams');
}));

test('a budget burns down to what the server says is used', () => visit({view: 'teams'}, async (page) => {
  const [budget] = (await server.get('budgets')).budgets;
  const burn = await server.get(`burndown/${budget.name}`);
  assert.equal(burn.points.at(-1).used, burn.used);
  const used = burn.points.map((point) => Number(point.used));
  assert.deepEqual(used, [...used].sort((a, b) => a - b), 'expected a curve that never falls');
  // The ledger's intervals, summed up step by step, end where the engine's own meter stands.
  const {rows} = await server.get('ledger?leaf=language');
  const rates = {'a100-80gb': 0.5};
  const upper = rows.reduce((sum, row) => sum + Number(row.gpuHours) * (rates[row.model] ?? 1), 0);
  assert.ok(Number(burn.used) > 0 && Number(burn.used) <= upper + 0.01, `expected ${burn.used} <= ${upper}`);
  const left = Number(budget.effective) - Number(budget.used);
  const text = await shown(page, '.budget .card-head');
  assert.ok(text.includes(`${Math.round(left).toLocaleString('en')} of 5,000 GPU-h left`), text);
  await page.getByText('The curve as a table').click();
  const last = await page.locator('.budget tbody tr').last().innerText();
  assert.ok(last.includes(`${Number(Number(budget.used).toFixed(1)).toLocaleString('en')} GPU-h`), last);
}));

test('the queue lists who waits and why, and what would change it', () => visit({view: 'queue'}, async (page, one) => {
  const waiting = (await server.get('pods')).pods.filter(({state}) => state === 'pending' || state === 'claimed');
  await page.locator('.queue-table tbody tr').nth(waiting.length - 1).waitFor();
  for (const each of waiting) {
    const row = page.locator('.queue-table tbody tr', {has: page.locator(`a:text-is("${each.name}")`)});
    assert.ok((await row.innerText()).includes(each.reason.text), each.name);
  }
  const explained = await server.get('explain/team-language/pretrain-next');
  await page.getByRole('button', {name: 'Why team-language/pretrain-next waits'}).click();
  await page.locator('.advice-line', {hasText: explained.advice}).waitFor();
  assert.ok((await shown(page, '.explanation')).includes(explained.reason.detail.replaceAll(/\s+/g, ' ')));
  await one.shot('queue');
}));

test('what-if starts from the pod and changes nothing', () => visit({view: 'queue'}, async (page, one) => {
  // Starts are foretold anew as time goes on, whoever asks.
  const held = async () => (await server.get('pods')).pods.map(({forecast, ...pod}) => pod);
  const before = await held();
  await page.getByRole('button', {name: 'Why team-language/pretrain-next waits'}).click();
  await page.getByRole('button', {name: 'What if …', exact: true}).click();
  const dialog = page.getByRole('dialog');
  assert.equal(await dialog.getByLabel('How many').inputValue(), '8');
  assert.equal(await dialog.getByLabel('GPU models').inputValue(), 'h100');
  assert.equal(await dialog.getByLabel('Namespace').inputValue(), 'team-language');
  await dialog.getByRole('button', {name: 'Ask the scheduler'}).click();
  await dialog.getByText('It would wait').waitFor();
  await dialog.getByLabel('How many').fill('1');
  await dialog.getByRole('button', {name: 'Ask the scheduler'}).click();
  await dialog.getByText('It would start at once').waitFor();
  await one.shot('whatif', false);
  await dialog.getByLabel('Namespace').fill('team-vision');
  await dialog.getByLabel('How many').fill('4');
  await dialog.getByRole('button', {name: 'Ask the scheduler'}).click();
  const {pods: [said]} = await server.call('POST', '/api/v1/whatif', {pods: [
    pod('team-vision', 'x', {limits: {'nvidia.com/gpu': 4}, annotations: {'tranche.dev/model': 'h100'}})]});
  const verdict = !said.fits ? 'It would wait' : said.victims.length ? 'It would start after' : 'It would start at once';
  await dialog.getByText(verdict).waitFor();
  assert.deepEqual(await held(), before);
}));

test('what was taken back is told with who gave way', () => visit({view: 'reclaims'}, async (page, one) => {
  const {reclaims} = await server.get('reclaims');
  const done = reclaims.find(({phase}) => phase === 'Done');
  assert.ok(done, 'expected a reclaim that was carried out');
  const row = page.locator('.reclaim-table tbody tr', {hasText: `${done.for.namespace}/${done.for.name}`});
  await row.locator('.opens').click();
  const text = await shown(page, '.reclaim-table');
  for (const victim of done.victims) assert.ok(text.includes(victim.pod), text);
  assert.ok(text.includes(`rule ${done.rule}`) && text.includes('done'), text);
  await one.shot('reclaims');
}));

test('the ledger reports as the server does, and as CSV', () => visit({view: 'ledger'}, async (page, one) => {
  await page.locator('.ledger-table').waitFor();
  const from = await page.locator('#ledger-from').inputValue();
  const to = new Date(new Date(`${await page.locator('#ledger-to').inputValue()}T00:00:00Z`).getTime() + 86400000);
  const asked = `ledger?from=${from}T00:00:00Z&to=${to.toISOString()}`;
  const report = await server.get(asked);
  assert.ok(report.rows.length > 5);
  assert.equal(await page.locator('.ledger-table tbody tr').count(), report.rows.length);
  const series = await server.get(`${asked.replace('?', '/series?')}&step=86400`);
  for (const row of report.rows) {
    const same = series.rows.find(({leaf, model}) => leaf === row.leaf && model === row.model);
    const sum = same.gpuHours.reduce((total, hours) => total + Number(hours), 0);
    assert.ok(Math.abs(sum - Number(row.gpuHours)) < 0.02, `${row.leaf} ${row.model}: ${sum}, ${row.gpuHours}`);
  }
  const file = await downloaded(page, page.getByRole('button', {name: 'Download CSV'}));
  const lines = file.trimEnd().split('\r\n').map((line) => line.split(','));
  assert.deepEqual(lines[0], ['team', 'model', 'gpu_hours', 'from', 'to', 'restored_gpu_hours']);
  assert.deepEqual(lines.slice(1).map((line) => line.slice(0, 3)),
                   report.rows.map((row) => [row.leaf, row.model, row.gpuHours]));
  await one.shot('ledger');
  await page.getByRole('button', {name: 'Last month'}).click();
  await page.getByText('Nobody used a GPU in this time').waitFor();
}));

test('who had what at a moment, by its time, the slider and the address', () => visit({view: 'ledger'}, async (page, one) => {
  const words = (rows) => {
    const gpus = rows.reduce((sum, {gpus: some}) => sum + Number(some), 0);
    // Thousandths are what the server tells.
    const shown = Number((Math.round(1000 * gpus) / 1000).toFixed(2));
    return new RegExp(`^${shown} GPUs held by ${rows.length} pods$`);
  };
  const sum = page.locator('.then-sum');
  // Now: those that the cluster has placed, and no others.
  const {rows: now} = await server.get('ledger/held');
  assert.ok(now.length > 10);
  await sum.filter({hasText: words(now)}).waitFor();
  const {pods} = await server.get('pods');
  const placed = pods.filter(({state}) => state === 'bound').map(({namespace, name}) => `${namespace}/${name}`).sort();
  assert.deepEqual(now.map(({namespace, pod: name}) => `${namespace}/${name}`).sort(), placed);

  // Some hours earlier, by the keyboard: five minutes a step.
  await page.locator('#then-slider').focus();
  for (let step = 0; step < 48; ++step) await page.keyboard.press('ArrowLeft');
  await page.waitForFunction(() => location.hash.includes('at='));
  const chosen = new URLSearchParams((await page.evaluate(() => location.hash)).split('?')[1]).get('at');
  const {rows: then} = await server.get(`ledger/held?at=${chosen}`);
  assert.notDeepEqual(then, now, 'the world was another one then');
  await sum.filter({hasText: words(then)}).waitFor();
  await one.shot('then');

  // The address has it, with what is searched.
  const name = then[0].pod;
  await page.locator('#then-find').fill(name);
  await page.locator('.then-table tbody tr').filter({hasText: name}).first().waitFor();
  assert.equal(await page.locator('.then-table tbody tr').count(),
               then.filter((row) => [row.node, row.namespace, row.pod, row.leaf, row.model].join(' ').includes(name)).length);
  await page.reload();
  await sum.filter({hasText: words(then)}).waitFor();
  assert.equal(await page.locator('#then-find').inputValue(), name);

  // A time typed, before all that the ledger knows.
  await page.locator('#then-at').fill('2020-01-02T03:04');
  await page.locator('#then-at').blur();
  await page.getByText('Nobody held a GPU then').waitFor();
  await page.getByRole('button', {name: 'Now', exact: true}).click();
  await page.locator('#then-find').fill('');
  await sum.filter({hasText: words(now)}).waitFor();
  assert.ok(!(await page.evaluate(() => location.hash)).includes('at='));
}));

test('advice is shown', () => visit({view: 'advice'}, async (page, one) => {
  await page.getByRole('heading', {name: 'Split of the fleet'}).waitFor();
  assert.equal((await server.get('advice')).rightSizes, null, 'nobody measures this server');
  await page.getByText('nobody is asked how much GPUs are used').waitFor();
  await one.shot('advice');
}));

test('work that would do with less is listed with what to ask for', () => visit({view: 'advice'}, async (page, one) => {
  const advice = await server.get('advice');
  const rightSizes = {measuring: 40, measured: 12, savedMilli: 3857, notes: ['a note'], entries: [
    {pod: 'team-vision/label-2', node: 'h100-a', leaf: 'vision', hours: 216, busiestHourPercent: 4, memoryMiB: 6144, unused: 0,
     holds: '1 GPU', wouldDo: '1g.10gb', request: {key: 'nvidia.com/mig-1g.10gb', value: '1'}, savedMilli: 857},
    {pod: 'team-language/train', node: 'h100-b', leaf: 'language', hours: 25, busiestHourPercent: 99, memoryMiB: null, unused: 3,
     holds: '4 GPUs', wouldDo: '1 GPU', request: {key: 'nvidia.com/gpu', value: '1'}, savedMilli: 3000}]};
  await page.context().route('**/api/v1/advice', (route) => route.fulfill({json: {...advice, rightSizes}}));
  await page.reload();
  const block = page.locator('section', {has: page.getByRole('heading', {name: 'Work that would do with less'})}).last();
  await block.locator('tbody tr').nth(1).waitFor();
  const text = (await block.innerText()).replaceAll(/\s+/g, ' ');
  assert.match(text, /12 of 40 pods that are measured were measured for a day. Together they would leave 3.86 GPUs to others/);
  assert.match(text, /label-2 vision 1 GPU 4 % 6 GiB 216 1g.10gb 0.86 nvidia.com\/mig-1g.10gb: 1/);
  assert.match(text, /train language 4 GPUs 99 % – 25 1 GPU 3 nvidia.com\/gpu: 1/);
  await one.shot('advice-sizes');
  await page.setViewportSize({width: 390, height: 844});
  assert.deepEqual(await brokenWords(page), []);
}));

test('the page follows the cluster, and asks only for what changed', () => visit({view: 'queue'}, async (page) => {
  const quotas = [];
  const pods = [];  // {since, names: of the pods that were sent, gone: likewise; null: unchanged}
  page.on('response', async (reply) => {
    const {pathname, searchParams} = new URL(reply.url());
    if (pathname === '/api/v1/quotas') quotas.push(reply.status());
    if (pathname !== '/api/v1/pods') return;
    const answer = reply.status() === 200 ? await reply.json() : null;
    const namesOf = (list) => list?.map(({name}) => name) ?? null;
    pods.push({since: searchParams.get('since'), names: namesOf(answer?.pods), gone: namesOf(answer?.gone)});
  });
  await page.locator('.queue-table').waitFor();
  await server.apply(pod('team-vision', 'newcomer', {limits: {'nvidia.com/gpu': 64}}));
  await page.locator('.queue-table a:text-is("newcomer")').waitFor({timeout: 10000});
  await server.remove('Pod', 'team-vision', 'newcomer');
  await server.advance(2);
  await page.locator('.queue-table a:text-is("newcomer")').waitFor({state: 'detached', timeout: 10000});
  await page.waitForTimeout(2500);
  assert.ok(quotas.includes(304), `expected an answer 304, found ${quotas}`);
  const all = (await server.get('pods')).pods.length;
  const [whole, ...later] = pods;
  assert.equal(whole.since, null);
  assert.ok(whole.names.length >= all, `expected all ${all} pods first, found ${whole.names.length}`);
  assert.ok(later.length > 0 && later.every(({since}) => since !== null), JSON.stringify(later));
  assert.ok(later.some(({names}) => names?.includes('newcomer')), 'it came');
  assert.ok(later.some(({gone}) => gone?.includes('newcomer')), 'it went');
  assert.ok(later.some(({names}) => names === null || names.length < all), 'not all again each time');
}));

for (const dark of [false, true]) {
  const look = dark ? 'dark' : 'light';
  test(`every view in ${look}, wide and narrow`, async () => {
    for (const width of [1440, 390]) {
      await visit({view: 'fleet', dark, width}, async (page, one) => {
        await page.locator('.gpu').first().waitFor();
        for (const view of Object.keys(VIEWS)) {
          await page.evaluate((hash) => { location.hash = hash; }, `#/${await addressOf(server, view)}`);
          const section = view === 'ended' ? 'pods' : view;  // a list of the same view
          await page.locator(`#view-${section} :is(.card, .node, section):visible`).first().waitFor();
          await page.waitForTimeout(500);
          const scheme = await page.evaluate(() => getComputedStyle(document.documentElement).colorScheme);
          assert.equal(scheme, look);
          const wider = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
          assert.ok(wider <= 0, `${view} at ${width}: expected no sideways scrolling, found ${wider} px`);
          assert.deepEqual(await brokenWords(page), [], `${view} at ${width}: expected whole words`);
          await one.shot(`${view}-${look}${width < 1000 ? '-narrow' : ''}`);
        }
      });
    }
  });
}

test('the theme can be chosen and is kept', () => visit({view: 'teams'}, async (page) => {
  await page.locator('#theme').selectOption('dark');
  const scheme = () => page.evaluate(() => getComputedStyle(document.documentElement).colorScheme);
  assert.equal(await scheme(), 'dark');
  await page.reload();
  await page.locator('#contact[data-state="live"]').waitFor();
  assert.equal(await scheme(), 'dark');
}));

test('a server that asks for a token gets one', () => visit({view: 'fleet'}, async (page, one) => {
  one.expected.push('401');
  await page.context().route('**/api/v1/**', (route) => {
    if (route.request().headers().authorization === 'Bearer let-me-in') return route.continue();
    return route.fulfill({status: 401, body: '{"error":"expected a token"}', contentType: 'application/json'});
  });
  await page.reload();
  await page.getByLabel('Token').fill('let-me-in');
  await page.getByRole('button', {name: 'Show the page'}).click();
  await page.locator('.node').first().waitFor();
}));

// Counts on nothing but what the server of `pages.auth: Kubernetes` answers.
test('a server that asks for a token of the cluster says where to get one', () => visit({view: 'fleet'}, async (page, one) => {
  one.expected.push('401', '403');
  const asked = [];
  await page.context().route('**/api/v1/**', (route) => {
    const {authorization} = route.request().headers();
    asked.push({authorization, url: route.request().url()});
    const refuse = (status, error, headers = {}) => route.fulfill(
      {status, headers, body: JSON.stringify({error}), contentType: 'application/json'});
    if (authorization === 'Bearer of-a-member') return route.continue();
    if (authorization === 'Bearer of-a-stranger') return refuse(403, 'found none that is known');
    return refuse(401, 'expected the bearer token of a Kubernetes user', {'WWW-Authenticate': 'Bearer realm="kubernetes"'});
  });
  await page.reload();
  await page.getByText('kubectl create token ACCOUNT -n NAMESPACE').waitFor();
  const show = page.getByRole('button', {name: 'Show the page'});
  await page.getByLabel('Token').fill('of-a-stranger');
  await show.click();
  await page.getByText('Not with this token: found none that is known.').waitFor();
  assert.equal(await page.locator('main').isVisible(), false);
  await page.getByLabel('Token').fill(' of-a-member ');
  await page.getByLabel('Namespace').fill('team-vision');
  await show.click();
  await page.locator('.node').first().waitFor();
  assert.ok(asked.some(({authorization, url}) =>
    authorization === 'Bearer of-a-member' && url.endsWith('/api/v1/pods?namespace=team-vision')));
  // In this tab alone.
  const kept = await page.evaluate(() => [JSON.stringify(localStorage), sessionStorage.getItem('token'), document.cookie]);
  assert.equal(kept[0].includes('of-a-member'), false);
  assert.deepEqual(kept.slice(1), ['of-a-member', '']);
}));

test('empty clusters say so', async () => {
  const empty = await Server.start({ledger: false});
  try {
    const words = {fleet: 'no GPU nodes yet', teams: 'No team has a quota', queue: 'Nothing waits',
                   reclaims: 'Nothing was taken back', ledger: 'keeps no ledger'};
    for (const [view, text] of Object.entries(words)) {
      await visit({view, server: empty}, async (page, one) => {
        one.expected.push('404');
        await page.getByText(text).waitFor();
        await one.shot(`empty-${view}`);
      });
    }
  } finally {
    await empty.stop();
  }
});

test('a server that went away is told, with the age of what is shown', async () => {
  const leaving = await Server.start({ledger: false});
  await visit({view: 'fleet', server: leaving}, async (page, one) => {
    one.expected.push('ERR_CONNECTION_REFUSED', 'ERR_EMPTY_RESPONSE', 'ERR_CONNECTION_RESET');
    await page.locator('#contact[data-state="live"]').waitFor();
    await leaving.stop();
    await page.getByText(/No answer, showing \d\d:\d\d:\d\d/).waitFor({timeout: 15000});
  });
});
