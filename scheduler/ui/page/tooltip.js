// One floating description for whatever has the pointer or the focus.

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
  }

  get anchor() {
    return this.#anchor;
  }

  show(anchor, content) {
    if (this.#anchor !== anchor) this.hide();
    this.#anchor = anchor;
    this.#box.replaceChildren(content);
    this.#box.hidden = false;
    anchor.setAttribute('aria-describedby', this.#box.id);
    this.#place(anchor.getBoundingClientRect());
  }

  hide() {
    this.#anchor?.removeAttribute('aria-describedby');
    this.#anchor = null;
    this.#box.hidden = true;
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
