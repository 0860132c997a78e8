// A real Chromium or Firefox, and a page that fails the test when it asks another host, breaks its own content
// security policy, or has an error.

import {mkdirSync, readFileSync} from 'node:fs';
import path from 'node:path';

import {chromium, firefox} from 'playwright-core';

import {ROOT} from './server.mjs';

const SCREENSHOTS = path.join(ROOT, 'build/page');

// Every view, and the address of one example of it on a busy day, or what finds it on that day's server.
export const VIEWS = {
  fleet: 'fleet', pods: 'pods', ended: 'pods?state=ended', queue: 'queue?open=team-language/pretrain-next', gangs: 'gangs', teams: 'teams',
  reclaims: 'reclaims', events: 'events', ledger: 'ledger', advice: 'advice', pod: 'pods/team-language/pretrain-next', node: 'nodes/a100-mig?gpu=5',
  team: 'teams/language', gang: 'gangs/team-platform/wide',
  reclaim: async (server) => `reclaims/${(await server.get('reclaims')).reclaims[0].name}`,
};
export const addressOf = async (server, view) => (typeof VIEWS[view] === 'string' ? VIEWS[view] : VIEWS[view](server));

// Words that are drawn on more than one line, though they would fit into one.
export function brokenWords(page) {
  return page.evaluate(() => {
    const broken = [];
    const walker = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const {parentElement: parent} = node;
      if (!parent.checkVisibility() || parent.closest('.uuid, svg, canvas, .uplot')) continue;
      for (const {0: word, index} of node.data.matchAll(/[^\s/-]{2,24}/g)) {
        const range = document.createRange();
        range.setStart(node, index);
        range.setEnd(node, index + word.length);
        const lines = new Set([...range.getClientRects()].map(({top}) => Math.round(top)));
        if (lines.size > 1) broken.push(word);
      }
    }
    return broken;
  });
}

// A Firefox as it is distributed. It is driven by WebDriver BiDi, by which nobody can ask for dark
// colours, nor be told of downloads.
export const FIREFOX = process.env.FIREFOX;

export function launch() {
  if (FIREFOX) return firefox.launch({channel: 'moz-firefox', executablePath: FIREFOX});
  return chromium.launch({executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
                          args: ['--no-sandbox', '--disable-dev-shm-usage', '--force-color-profile=srgb']});
}

// What the page and its worker hold of JavaScript after their garbage is gone, in bytes. In Chromium alone.
export async function heapOf(page) {
  const session = await page.context().newCDPSession(page);
  const workers = [];
  const waiting = new Map();
  session.on('Target.attachedToTarget', ({sessionId, targetInfo}) => {
    if (targetInfo.type === 'worker') workers.push(sessionId);
  });
  session.on('Target.receivedMessageFromTarget', ({message}) => {
    const {id, result} = JSON.parse(message);
    waiting.get(id)?.(result);
  });
  await session.send('Target.setAutoAttach', {autoAttach: true, waitForDebuggerOnStart: false, flatten: false});
  let serial = 0;
  const ofWorker = (sessionId, method) => new Promise((resolve) => {
    waiting.set(++serial, resolve);
    session.send('Target.sendMessageToTarget', {sessionId, message: JSON.stringify({id: serial, method, params: {}})});
  });
  const heaps = [];
  for (const ask of [(method) => session.send(method), ...workers.map((id) => (method) => ofWorker(id, method))]) {
    await ask('HeapProfiler.collectGarbage');
    heaps.push((await ask('Runtime.getHeapUsage')).usedSize);
  }
  await session.detach();
  return heaps;
}

// The text of the file that the page makes when the button is pressed.
export async function downloaded(page, button) {
  if (!FIREFOX) {
    const download = page.waitForEvent('download');
    await button.click();
    return readFileSync(await (await download).path(), 'utf8');
  }
  await page.evaluate(() => {
    const create = URL.createObjectURL;
    URL.createObjectURL = (blob) => {
      window.fileOfTest = blob;
      return create(blob);
    };
  });
  await button.click();
  return page.evaluate(() => window.fileOfTest.text());
}

export class Visit {
  static async open(browser, server, {view = 'fleet', dark = false, width = 1440, height = 900, ...more} = {}) {
    const context = await browser.newContext({
      viewport: {width, height}, colorScheme: dark ? 'dark' : 'light', reducedMotion: 'reduce', acceptDownloads: true,
      ...more});
    const page = await context.newPage();
    const visit = new Visit(page, context);
    page.on('request', (request) => {
      const {protocol, origin} = new URL(request.url());
      if (protocol !== 'data:' && protocol !== 'blob:' && origin !== server.url) visit.problems.push(`asked ${request.url()}`);
    });
    page.on('pageerror', (error) => {
      if (!visit.pictured) visit.problems.push(`error: ${error.stack ?? error.message}`);
    });
    page.on('console', (message) => {
      if (!visit.pictured && message.type() === 'error' && !visit.expected.some((text) => message.text().includes(text))) {
        visit.problems.push(`console: ${message.text()}`);
      }
    });
    await page.addInitScript(() => {
      document.addEventListener('securitypolicyviolation', (event) =>
        console.error(`Content Security Policy: ${event.violatedDirective} ${event.blockedURI}`));
    });
    if (FIREFOX && dark) {
      await page.addInitScript(() => {
        if (location.protocol.startsWith('http') && localStorage.getItem('theme') === null) localStorage.setItem('theme', 'dark');
      });
    }
    await page.goto(`${server.url}/ui/#/${view}`);
    return visit;
  }

  constructor(page, context) {
    this.page = page;
    this.context = context;
    this.problems = [];
    this.pictured = false;
    this.expected = [];  // parts of console errors that the test provokes
  }

  // The whole page, or what is in view, as a picture for people.
  async shot(name, fullPage = true) {
    mkdirSync(SCREENSHOTS, {recursive: true});
    // For a picture the driver puts a style sheet of its own into the page, which the page's policy forbids;
    // what is said of it there comes a moment later.
    this.pictured = Boolean(FIREFOX);
    await this.page.screenshot({path: path.join(SCREENSHOTS, `${name}${FIREFOX ? '-firefox' : ''}.png`), fullPage});
    if (FIREFOX) await this.page.waitForTimeout(300);
    this.pictured = false;
  }

  // Throws what went wrong on the page meanwhile.
  async close() {
    await this.context.close();
    if (this.problems.length) throw new Error(`expected a page without problems, found:\n${this.problems.join('\n')}`);
  }
}
