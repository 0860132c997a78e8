// axe-core in a page: no rule may be broken.

import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import {createRequire} from 'node:module';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

export async function violationsOf(page) {
  await page.evaluate(`${AXE}; 0`);
  return page.evaluate(async () => {
    const {violations, passes} = await globalThis.axe.run(document, {resultTypes: ['violations', 'passes']});
    return {passes: passes.length, violations: violations.map(({id, impact, nodes}) => ({id, impact,
      nodes: nodes.slice(0, 3).map(({html, failureSummary}) => `${html.slice(0, 160)}: ${failureSummary}`)}))};
  });
}

export async function check(page, name) {
  const found = await violationsOf(page);
  console.log(`${name}: ${found.passes} rules pass, ${found.violations.length} fail`);
  assert.ok(found.passes > 15, `${name}: expected rules that apply, found ${found.passes}`);
  assert.deepEqual(found.violations, [], name);
}
