// axe-core on every view, light and dark: nothing serious, and a score of at least 95.
//
// The score is Lighthouse's: of all rules that apply, weighted by their impact, the share that pass.

import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {after, before, test} from 'node:test';

import {launch, Visit} from './browser.mjs';
import {busyDay} from './scenario.mjs';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const WEIGHTS = {critical: 10, serious: 7, moderate: 3, minor: 1};
const LEAST_SCORE = 95;

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
    const brief = ({id, impact, nodes}) => ({id, impact, nodes: nodes.slice(0, 3).map(({html, failureSummary}) =>
      `${html.slice(0, 160)}: ${failureSummary}`)});
    const {violations, passes} = await globalThis.axe.run(document, {resultTypes: ['violations', 'passes']});
    const ranks = new Map(globalThis.axe.getRules().map(({ruleId, tags}) => [ruleId, tags]));
    return {violations: violations.map(brief), passes: passes.map(({id, nodes}) => ({
      id, impact: nodes.flatMap(({any, all, none}) => [...any, ...all, ...none]).map(({impact}) => impact).find(Boolean),
      tags: ranks.get(id)}))};
  });
  const weight = (rules) => rules.reduce((sum, {impact}) => sum + (WEIGHTS[impact] ?? 3), 0);
  const good = weight(found.passes);
  const score = Math.round(100 * good / (good + weight(found.violations)));
  console.log(`${name}: accessibility ${score}, ${found.passes.length} rules pass, ` +
              `${found.violations.length} fail`);
  assert.deepEqual(found.violations.filter(({impact}) => impact === 'serious' || impact === 'critical'), []);
  assert.ok(score >= LEAST_SCORE, `${name}: expected ${LEAST_SCORE} or more, found ${score}: ` +
            JSON.stringify(found.violations));
}

for (const dark of [false, true]) {
  for (const view of ['fleet', 'teams', 'queue', 'reclaims', 'ledger', 'advice']) {
    const name = `${view}, ${dark ? 'dark' : 'light'}`;
    test(name, async () => {
      const visit = await Visit.open(browser, server, {view, dark});
      const {page} = visit;
      await page.locator('#contact[data-state="live"]').waitFor();
      await page.waitForTimeout(700);
      for (const details of await page.locator('details:visible > summary').all()) await details.click();
      const row = page.locator('.opens').first();
      if (await row.count()) await row.click();
      await page.waitForTimeout(400);
      await check(page, name);
      if (view === 'queue') {
        await page.locator('.explanation .primary').click();
        await page.getByRole('button', {name: 'Ask the scheduler'}).click();
        await page.locator('.verdict').waitFor();
        await check(page, `what-if, ${dark ? 'dark' : 'light'}`);
      }
      await visit.close();
    });
  }
}
