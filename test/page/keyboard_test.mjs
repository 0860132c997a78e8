// The whole page without a pointer.

import assert from 'node:assert/strict';
import {after, before, test} from 'node:test';

import {launch, Visit} from './browser.mjs';
import {busyDay} from './scenario.mjs';

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
  const {id, tagName, textContent, dataset} = document.activeElement;
  return {id, tag: tagName, text: textContent.trim(), gpu: dataset.gpu, node: dataset.node};
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
  await visit.close();
});

test('through the views to a what-if and back', async () => {
  const visit = await Visit.open(browser, server, {view: 'fleet'});
  const {page} = visit;
  for (const [tab, title] of [['Teams', 'Teams'], ['Taken back', 'GPUs taken back'], ['Ledger', 'GPU-hours used'],
                              ['Advice', 'Advice'], ['Queue', 'Waiting pods']]) {
    await page.locator('#skip').focus();
    await tabTo(page, ({text}) => text.startsWith(tab));
    await page.keyboard.press('Enter');
    await page.getByRole('heading', {name: title, exact: true}).waitFor();
    assert.equal((await focused(page)).id, 'main');
  }
  await page.locator('.queue-table').waitFor();
  await tabTo(page, ({text}) => text === 'pretrain-next');
  await page.keyboard.press('Enter');
  await page.locator('.advice-line').waitFor();
  assert.equal((await focused(page)).text, 'pretrain-next', 'the focus stays when the row opens');
  await tabTo(page, ({text}) => text === 'What if …', 3);
  await page.keyboard.press('Enter');
  await page.getByRole('dialog').waitFor();
  await tabTo(page, ({text}) => text === 'Ask the scheduler');
  await page.keyboard.press('Enter');
  await page.getByText('It would wait').waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({state: 'hidden'});
  assert.equal((await focused(page)).text, 'What if …', 'the focus goes back where it came from');
  await visit.close();
});

test('words explain themselves on focus', async () => {
  const visit = await Visit.open(browser, server, {view: 'teams'});
  const {page} = visit;
  await page.locator('.term').first().focus();
  await page.locator('#tip', {hasText: 'GPUs of other teams'}).waitFor();
  await visit.close();
});
