// The table of waiting pods: reasons summed up first, then the pods, fifty a page. A row opens to
// what the server says about every node.

import {colourClass} from './colours.js';
import {el, formatCount} from './dom.js';
import {isWaiting, reasonText} from './model.js';

const PAGE_ROWS = 50;

export class WaitingPods {
  #parts;
  #explain;
  #pods = [];
  #page = 0;
  #reason = '';
  #open = null;          // uid of the pod whose explanation is shown
  #explanation = null;
  #signature = '';

  // `explain(namespace, name)` answers with the explanation or throws.
  constructor(parts, explain) {
    this.#parts = parts;
    this.#explain = explain;
  }

  show(pods, team) {
    this.#pods = pods.filter((pod) => isWaiting(pod) && (!team || pod.namespace === team));
    if (this.#reason && !this.#pods.some((pod) => reasonText(pod) === this.#reason)) {
      this.#reason = '';
    }
    this.#draw();
  }

  #draw() {
    const signature = JSON.stringify([this.#pods, this.#page, this.#reason, this.#open,
                                      this.#explanation]);
    if (signature === this.#signature) return;
    this.#signature = signature;
    const focus = document.activeElement?.dataset?.key;
    const {count, empty, reasons, table, rows, pages} = this.#parts;
    const matching = this.#reason
      ? this.#pods.filter((pod) => reasonText(pod) === this.#reason) : this.#pods;
    const last = Math.max(0, Math.ceil(matching.length / PAGE_ROWS) - 1);
    this.#page = Math.min(this.#page, last);
    const start = this.#page * PAGE_ROWS;

    count.textContent = formatCount(this.#pods.length);
    empty.hidden = this.#pods.length > 0;
    table.hidden = this.#pods.length === 0;
    reasons.replaceChildren(...this.#reasonItems());
    rows.replaceChildren(
      ...matching.slice(start, start + PAGE_ROWS).flatMap((pod) => this.#rows(pod)));
    pages.replaceChildren(...(last > 0 ? this.#pageLinks(last) : []));
    if (focus) {
      const again = document.querySelector(`[data-key="${CSS.escape(focus)}"]`);
      if (again && again !== document.activeElement) again.focus({preventScroll: true});
    }
  }

  #reasonItems() {
    const sums = new Map();
    for (const pod of this.#pods) {
      const text = reasonText(pod);
      sums.set(text, (sums.get(text) ?? 0) + 1);
    }
    const sorted = [...sums].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
    return sorted.map(([text, sum]) => {
      const button = el('button', {
        type: 'button', 'data-key': `reason ${text}`,
      }, el('strong', {}, formatCount(sum)), ` ${text}`);
      button.setAttribute('aria-pressed', String(this.#reason === text));
      button.addEventListener('click', () => {
        this.#reason = this.#reason === text ? '' : text;
        this.#page = 0;
        this.#draw();
      });
      return el('li', {}, button);
    });
  }

  #rows(pod) {
    const open = this.#open === pod.uid;
    const button = el('button', {
      type: 'button', class: 'pod-name', 'data-key': `pod ${pod.uid}`,
      title: 'Show what every node answers',
    }, pod.name);
    button.setAttribute('aria-expanded', String(open));
    button.addEventListener('click', () => this.#toggle(pod));
    const row = el('tr', {},
      el('td', {}, el('span', {class: `swatch ${colourClass(pod.namespace)}`}), button,
         el('span', {class: 'quiet-text team'}, pod.namespace)),
      el('td', {}, reasonText(pod)));
    if (!open) return [row];
    return [row, el('tr', {class: 'detail'}, el('td', {colspan: 2}, this.#detail(pod)))];
  }

  async #toggle(pod) {
    this.#explanation = null;
    this.#open = this.#open === pod.uid ? null : pod.uid;
    this.#draw();
    if (!this.#open) return;
    let found;
    try {
      found = await this.#explain(pod.namespace, pod.name);
    } catch (error) {
      found = {error: error.message};
    }
    if (this.#open !== pod.uid) return;
    this.#explanation = found;
    this.#draw();
  }

  #detail(pod) {
    const found = this.#explanation;
    if (!found) return el('p', {class: 'quiet-text'}, 'Asking');
    if (found.error) return el('p', {class: 'bad'}, found.error);
    const groups = new Map();
    for (const verdict of found.nodes ?? []) {
      const text = verdict.fits ? 'fits'
        : verdict.reason?.detail || verdict.reason?.text || verdict.detail || 'does not fit';
      groups.set(text, [...(groups.get(text) ?? []), verdict.node ?? verdict.name]);
    }
    const items = [...groups].map(([text, nodes]) => el('li', {},
      el('strong', {}, nodes.length > 3 ? `${formatCount(nodes.length)} nodes` : nodes.join(', ')),
      `: ${text}`));
    const detail = pod.reason?.detail;
    return el('div', {},
      detail ? el('p', {}, detail) : null,
      items.length ? el('ul', {}, ...items) : null,
      found.advice ? el('p', {class: 'advice'}, found.advice) : null);
  }

  #pageLinks(last) {
    const link = (text, page, name) => {
      const button = el('button', {
        type: 'button', 'data-key': `page ${name}`, disabled: page < 0 || page > last,
      }, text);
      button.addEventListener('click', () => {
        this.#page = page;
        this.#draw();
      });
      return button;
    };
    return [link('Previous', this.#page - 1, 'previous'),
            el('span', {}, `${this.#page + 1} of ${last + 1}`),
            link('Next', this.#page + 1, 'next')];
  }
}
