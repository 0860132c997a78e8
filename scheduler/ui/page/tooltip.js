// One floating description for whatever has the pointer or the focus. Words with a data-meaning
// get theirs without further ado.

const MARGIN = 10;

export class Tooltip {
  #box;
  #anchor = null;

  constructor(box) {
    this.#box = box;
    document.addEventListener('keydown', (event) => {
      if (event.key === 'Escape') this.hide();
    });
    window.addEventListener('scroll', () => this.#onScroll(), {passive: true});
    for (const kind of ['mouseover', 'focusin', 'click']) {
      document.addEventListener(kind, ({target}) => {
        const word = target.closest?.('[data-meaning]');
        if (word) this.show(word, document.createTextNode(word.dataset.meaning));
      });
    }
    for (const kind of ['mouseout', 'focusout']) {
      document.addEventListener(kind, ({target}) => {
        const word = target.closest?.('[data-meaning]');
        if (word && word === this.#anchor) this.hide();
      });
    }
  }

  get anchor() {
    return this.#anchor;
  }

  show(anchor, content) {
    if (this.#anchor !== anchor) this.hide();
    this.#anchor = anchor;
    this.#fill(content);
    anchor.setAttribute('aria-describedby', this.#box.id);
    this.#place(anchor.getBoundingClientRect());
  }

  // For what is no element of its own.
  showAt(x, y, content) {
    this.hide();
    this.#fill(content);
    this.#place({left: x, width: 0, top: y - 6, bottom: y + 10});
  }

  hide() {
    this.#anchor?.removeAttribute('aria-describedby');
    this.#anchor = null;
    this.#box.hidden = true;
  }

  #fill(content) {
    // A dialog lies over everything else: the description has to be inside.
    const home = document.querySelector('dialog[open]') ?? document.body;
    if (this.#box.parentElement !== home) home.append(this.#box);
    this.#box.replaceChildren(content);
    this.#box.hidden = false;
  }

  // The pointer is over something else now; the focus moved along.
  #onScroll() {
    if (this.#anchor && this.#anchor === document.activeElement) {
      this.#place(this.#anchor.getBoundingClientRect());
    } else {
      this.hide();
    }
  }

  #place(target) {
    const {width, height} = this.#box.getBoundingClientRect();
    const middle = target.left + target.width / 2 - width / 2;
    const left = Math.min(Math.max(MARGIN, middle), window.innerWidth - width - MARGIN);
    const below = target.bottom + MARGIN;
    const fits = below + height <= window.innerHeight;
    this.#box.style.left = `${Math.max(MARGIN, left)}px`;
    this.#box.style.top = `${fits ? below : Math.max(MARGIN, target.top - height - MARGIN)}px`;
  }
}
