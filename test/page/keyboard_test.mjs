// The whole page without a pointer.

import assert from 'node:assert/strict';
import {after, before, test} from 'node:test';

import {launch, Visit} from './browser.mjs';
import {busyDay} from './scenario.mjs';
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

const focused = (page) => page.evaluate(() => {
  const {id, tagName, textContent, dataset, ariaLabel} = document.activeElement;
  return {id, tag: tagName, text: textContent.trim(), label: ariaLabel, gpu: dataset.gpu, node: dataset.node};
});

async function tabTo(page, wanted, most = 40) {
  for (let step = 0; step < most; ++step) {
    await page.keyboard.press('Tab');
    if (wanted(await focused(page))) return;
  }
  throw new Error(`expected the focus within ${most} steps, found ${JSON.stringify(await focused(page))}`);
}

test('from the first Tab to the details of a GPU', async () => {
  const visit = await Visit.open(browser, server, {view: 'fleet'});
  const {page} = visit;
  await page.locator('.gpu').first().waitFor();
  await page.keyboard.press('Tab');
  assert.equal((await focused(page)).text, 'Skip to the content');
  await page.keyboard.press('Enter');
  assert.equal((await focused(page)).id, 'main');
  await tabTo(page, ({gpu}) => gpu !== undefined);
  const first = await focused(page);
  await page.locator('#tip', {hasText: first.node}).waitFor();
  await page.keyboard.press('ArrowRight');
  assert.notDeepEqual(await focused(page), first);
  await page.keyboard.press('End');
  assert.equal((await focused(page)).node, 'v100-mesh');
  await page.keyboard.press('Home');
  assert.equal((await focused(page)).node, first.node);
  await page.keyboard.press('ArrowDown');
  assert.notEqual((await focused(page)).node, first.node);
  await page.keyboard.press('Escape');
  await page.locator('#tip').waitFor({state: 'hidden'});
  // One GPU is in the tab order, not forty.
  assert.equal(await page.locator('.gpu[tabindex="0"]').count(), 1);
  const chosen = await focused(page);
  await page.keyboard.press('Enter');
  await page.getByRole('heading', {name: chosen.node, exact: true}).waitFor();
  assert.equal((await focused(page)).id, 'main');
  assert.match(page.url(), new RegExp(`#/nodes/${chosen.node}\\?gpu=${chosen.gpu}$`));
  await page.goBack();
  await page.locator('.gpu').first().waitFor();
  await visit.close();
});

test('through the views to a what-if and back', async () => {
  const visit = await Visit.open(browser, server, {view: 'fleet'});
  const {page} = visit;
  for (const [tab, title] of [['Pods', 'Pods'], ['Teams', 'Teams'], ['Reclaims', 'GPUs taken back'],
                              ['Ledger', 'GPU-hours used'], ['Advice', 'Advice'], ['Queue', 'Waiting pods']]) {
    await page.locator('#skip').focus();
    await tabTo(page, ({text}) => text.startsWith(tab));
    await page.keyboard.press('Enter');
    await page.getByRole('heading', {name: title, exact: true}).waitFor();
    assert.equal((await focused(page)).id, 'main');
  }
  await page.locator('.queue-table').waitFor();
  const opens = 'Why team-language/pretrain-next waits';
  await tabTo(page, ({label}) => label === opens);
  await page.keyboard.press('Enter');
  await page.locator('.advice-line').waitFor();
  assert.equal((await focused(page)).label, opens, 'the focus stays when the row opens');
  await tabTo(page, ({text}) => text === 'What if …', 4);
  await page.keyboard.press('Enter');
  await page.getByRole('dialog').waitFor();
  await tabTo(page, ({text}) => text === 'Ask the scheduler');
  await page.keyboard.press('Enter');
  await page.getByText('It would wait').waitFor();
  // What opened the dialog is drawn anew while it is open.
  const before = await page.locator('.explanation .primary').elementHandle();
  await server.apply(pod('team-language', 'one-more', {limits: {'nvidia.com/gpu': 64}}));
  await page.waitForFunction((element) => !element.isConnected, before);
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({state: 'hidden'});
  assert.equal((await focused(page)).text, 'What if …', 'the focus goes back where it came from');
  await server.remove('Pod', 'team-language', 'one-more');
  await visit.close();
});

test('a list is searched, sorted and followed', async () => {
  const visit = await Visit.open(browser, server, {view: 'pods'});
  const {page} = visit;
  await page.locator('.pods-table').waitFor();
  await page.locator('#skip').focus();
  await tabTo(page, ({id}) => id === 'pod-text');
  await page.keyboard.type('team-vision');
  await page.locator('#pods-shown', {hasText: ' of '}).waitFor();
  await tabTo(page, ({text}) => text.startsWith('Node'));
  await page.keyboard.press('Enter');
  await page.locator('th[aria-sort="ascending"]', {hasText: 'Node'}).waitFor();
  assert.ok((await focused(page)).text.startsWith('Node'), 'the focus stays when the list is sorted');
  await tabTo(page, ({tag}) => tag === 'A');
  const {text} = await focused(page);
  await page.keyboard.press('Enter');
  await page.getByRole('heading', {name: text, exact: true}).waitFor();
  assert.equal((await focused(page)).id, 'main');
  await visit.close();
});

test('words explain themselves on focus', async () => {
  const visit = await Visit.open(browser, server, {view: 'teams'});
  const {page} = visit;
  await page.locator('.term').first().focus();
  await page.locator('#tip', {hasText: 'GPUs of other teams'}).waitFor();
  await visit.close();
});
