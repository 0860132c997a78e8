// A page of one thing, or a list of its own: asks the server for it every few seconds while it is looked
// at, and says so where it is not there or does not come.

import {el, emptyState, redraw} from './dom.js';
import {formatClock} from './format.js';
import {serverNow} from './store.js';

const AGAIN_MS = 3000;

export class Page {
  #root;
  #ask;
  #content;
  #absent;
  #key = '';       // of what is shown
  #answer = null;  // of `ask`
  #problem = null;
  #at = null;      // when the answer came
  #asked = 0;
  #timer = null;

  // `ask(names)` promises what is known; `content(answer, names, query)` makes elements of it;
  // `absent(names)`: [title, text] for a 404; lists have none.
  constructor(root, {ask, content, absent = null}) {
    this.#root = root;
    this.#ask = ask;
    this.#content = content;
    this.#absent = absent;
  }

  // `names` null: something else is looked at. `more`: what the content depends on besides.
  show(names, query, more = null) {
    clearTimeout(this.#timer);
    if (!names) {
      this.#key = '';
      return;
    }
    const key = names.join('/');
    if (key !== this.#key) {
      this.#key = key;
      this.#answer = null;
      this.#problem = null;
      this.#asked = 0;
    }
    this.#draw(names, query, more);
    const wait = this.#asked + AGAIN_MS - Date.now();
    if (wait <= 0) this.#read(names, query, more);
    else this.#timer = setTimeout(() => this.#read(names, query, more), wait);
  }

  async #read(names, query, more) {
    const key = this.#key;
    this.#asked = Date.now();
    let problem = null;
    let answer = null;
    try {
      answer = await this.#ask(names);
    } catch (error) {
      problem = error;
    }
    if (key !== this.#key) return;
    this.#problem = problem;
    if (answer || problem.status === 404) this.#answer = answer;
    if (answer) this.#at = new Date();
    this.#draw(names, query, more);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      if (!document.hidden) this.#read(names, query, more);
    }, AGAIN_MS);
  }

  #draw(names, query, more) {
    const missing = this.#absent !== null && this.#problem?.status === 404;
    const stale = this.#problem && !missing ? this.#problem.message : null;
    // Ages are told in minutes, by the server's clock.
    const minute = Math.floor(serverNow() / 60000);
    redraw(this.#root, [this.#key, this.#answer, stale, missing, String(query), more, minute], () => {
      if (missing) return emptyState(...this.#absent(names));
      if (!this.#answer) {
        return stale ? el('p', {class: 'stale', role: 'status'}, `Nothing to show: ${stale}.`)
          : el('div', {class: 'skeleton', 'aria-hidden': 'true'}, el('i'), el('i'), el('i'));
      }
      return [stale ? el('p', {class: 'stale', role: 'status'}, `As of ${formatClock(this.#at)}: ${stale}.`) : null,
              ...this.#content(this.#answer, names, query)];
    });
  }
}
