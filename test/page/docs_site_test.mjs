// The documents as a web site (release/docs_site.py): axe-core on every page, light and dark; on a phone nothing is wider
// than the screen.

import assert from 'node:assert/strict';
import {execFile} from 'node:child_process';
import {mkdtempSync, readdirSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import path from 'node:path';
import {after, before, test} from 'node:test';
import {pathToFileURL} from 'node:url';
import {promisify} from 'node:util';

import {violationsOf} from './axe.mjs';
import {launch} from './browser.mjs';
import {ROOT} from './server.mjs';

const folder = mkdtempSync(path.join(tmpdir(), 'tranche-docs-'));
let browser;
let pages;
before(async () => {
  await promisify(execFile)(path.join(ROOT, 'release/docs_site.py'), ['--out', folder, '--source', 'https://example.com/blob/main/']);
  pages = readdirSync(folder, {recursive: true}).filter((file) => file.endsWith('.html')).sort();
  browser = await launch();
});
after(async () => {
  await browser?.close();
  rmSync(folder, {recursive: true, force: true});
});

for (const [colorScheme, width] of [['light', 1440], ['dark', 390]]) {
  test(`every page, ${colorScheme}, ${width} px`, async () => {
    assert.ok(pages.length > 60, `expected documents, decisions and references, found ${pages.length}`);
    const context = await browser.newContext({viewport: {width, height: 900}, colorScheme});
    const page = await context.newPage();
    const faults = [];
    for (const name of pages) {
      await page.goto(pathToFileURL(path.join(folder, name)).href);
      const {violations} = await violationsOf(page);
      faults.push(...violations.map(({id, nodes}) => `${name}: ${id}: ${nodes.join('\n')}`));
      const [wide, screen] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
      if (wide > screen) faults.push(`${name}: expected no more than ${screen} px across, found ${wide}`);
    }
    await context.close();
    assert.deepEqual(faults, []);
  });
}
