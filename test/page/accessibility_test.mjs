// axe-core on every view, light and dark, on a desk and on a phone, or at the widths of PAGE_WIDTHS: no violation at all.

import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {after, before, test} from 'node:test';

import {addressOf, launch, VIEWS, Visit} from './browser.mjs';
import {busyDay} from './scenario.mjs';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
let server;
let browser;
before(async () => {
  [server, browser] = await Promise.all([busyDay(), launch()]);
});
after(async () => {
  await browser?.close();
  await server?.stop();
});

async function check(page, name) {
  await page.evaluate(`${AXE}; 0`);
  const found = await page.evaluate(async () => {
    const {violations, passes} = await globalThis.axe.run(document, {resultTypes: ['violations', 'passes']});
    return {passes: passes.length, violations: violations.map(({id, impact, nodes}) => ({id, impact,
      nodes: nodes.slice(0, 3).map(({html, failureSummary}) => `${html.slice(0, 160)}: ${failureSummary}`)}))};
  });
  console.log(`${name}: ${found.passes} rules pass, ${found.violations.length} fail`);
  assert.ok(found.passes > 15, `${name}: expected rules that apply, found ${found.passes}`);
  assert.deepEqual(found.violations, [], name);
}

const widths = (process.env.PAGE_WIDTHS ?? '1440,390').split(',').map(Number);
const looks = widths.flatMap((width) => [[false, width], [true, width]]);
for (const [dark, width] of looks) {
  for (const view of Object.keys(VIEWS)) {
    const name = `${view}, ${dark ? 'dark' : 'light'}, ${width} px`;
    test(name, async () => {
      const visit = await Visit.open(browser, server, {view: await addressOf(server, view), dark, width});
      const {page} = visit;
      await page.locator('#contact[data-state="live"]').waitFor();
      await page.waitForTimeout(700);
      for (const details of await page.locator('details:visible > summary').all()) await details.click();
      const row = page.locator('.opens[aria-expanded="false"]:visible').first();
      if (await row.count()) await row.click();
      await page.waitForTimeout(400);
      await check(page, name);
      if (view === 'queue') {
        await page.locator('.explanation .primary').first().click();
        await page.getByRole('button', {name: 'Ask the scheduler'}).click();
        await page.locator('.verdict').waitFor();
        await check(page, `what-if, ${dark ? 'dark' : 'light'}, ${width} px`);
      }
      await visit.close();
    });
  }
}
