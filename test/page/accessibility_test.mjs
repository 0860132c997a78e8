// axe-core on every view, light and dark, on a desk and on a phone, or at the widths of PAGE_WIDTHS: no violation at all.

import {after, before, test} from 'node:test';

import {check} from './axe.mjs';
import {addressOf, launch, VIEWS, Visit} from './browser.mjs';
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
