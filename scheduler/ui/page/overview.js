// The whole fleet at a glance, on a canvas: a tile for each node, a cell in it for each GPU. The
// cards below show the same in full and are what keyboards and screen readers use.

import {colourValue, themeColour} from './colours.js';
import {el} from './dom.js';
import {formatGpus, plural} from './format.js';
import {isClosed, nodeSums, segmentsOf, takenShare} from './model.js';
import {teamOfPod} from './store.js';

// Fewer nodes are seen at a glance without it.
const FEWEST_NODES = 13;
const MOST_HEIGHT = 190;
const LARGEST_TILE = 34;
const STEPS = 8;

export class Overview {
  #canvas;
  #tip;
  #nodes = [];
  #by = 'team';
  #layout = {tile: 0, columns: 1, cells: 2};
  #colours = null;
  #window = [0, 0];
  #frame;
  #pending = false;

  // `onPick(node name)`: a tile was clicked.
  constructor(canvas, frame, tip, onPick) {
    this.#canvas = canvas;
    this.#frame = frame;
    this.#tip = tip;
    canvas.addEventListener('mousemove', (event) => this.#onMove(event));
    canvas.addEventListener('mouseleave', () => tip.hide());
    canvas.addEventListener('click', (event) => {
      const node = this.#at(event);
      if (node) onPick(node.name);
    });
    new ResizeObserver(() => this.#schedule()).observe(canvas.parentElement);
  }

  // `by`: 'team' or 'use'.
  show(nodes, by) {
    this.#nodes = nodes;
    this.#by = by;
    this.#schedule();
  }

  // Colours are read from the style sheet anew.
  recolour() {
    this.#colours = null;
    this.#schedule();
  }

  setWindow(first, last) {
    this.#window = [first, last];
    this.#drawFrame();
  }

  #schedule() {
    if (this.#pending) return;
    this.#pending = true;
    requestAnimationFrame(() => {
      this.#pending = false;
      this.#draw();
    });
  }

  #arrange(width) {
    const most = this.#nodes.reduce((largest, node) => Math.max(largest, node.gpus.length), 1);
    const cells = most > 4 ? 4 : 2;
    let tile = LARGEST_TILE;
    while (tile > 4) {
      const columns = Math.floor(width / tile);
      if (Math.ceil(this.#nodes.length / columns) * tile <= MOST_HEIGHT) break;
      tile -= 1;
    }
    this.#layout = {tile, columns: Math.max(1, Math.floor(width / tile)), cells};
  }

  #draw() {
    const box = this.#canvas.parentElement;
    box.hidden = this.#nodes.length < FEWEST_NODES;
    const width = box.clientWidth;
    if (box.hidden || width === 0) return;
    this.#arrange(width);
    const {tile, columns} = this.#layout;
    const height = Math.ceil(this.#nodes.length / columns) * tile;
    const scale = window.devicePixelRatio || 1;
    this.#canvas.width = Math.round(width * scale);
    this.#canvas.height = Math.round(height * scale);
    this.#canvas.style.height = `${height}px`;
    const pen = this.#canvas.getContext('2d');
    pen.scale(scale, scale);
    this.#readColours();
    for (const [at, node] of this.#nodes.entries()) {
      this.#drawNode(pen, node, (at % columns) * tile, Math.floor(at / columns) * tile);
    }
    this.#canvas.setAttribute('aria-label',
      `Map of ${plural(this.#nodes.length, 'node')}, coloured by ${this.#by}; the list below has the same in words`);
    this.#drawFrame();
  }

  #readColours() {
    this.#colours ??= {
      free: themeColour('--tile-free'), bad: themeColour('--bad'),
      use: Array.from({length: STEPS}, (_, at) => themeColour(`--use-${at}`)), teams: new Map(),
    };
  }

  #teamColour(team) {
    const {teams} = this.#colours;
    if (!teams.has(team)) teams.set(team, colourValue(team));
    return teams.get(team);
  }

  #drawNode(pen, node, left, top) {
    const {tile, cells} = this.#layout;
    const gap = tile > 7 ? 2 : 1;
    const size = tile - gap;
    const rows = Math.max(1, Math.ceil(node.gpus.length / cells));
    const width = size / cells;
    const height = size / rows;
    if (isClosed(node)) {
      pen.fillStyle = this.#colours.bad;
      pen.fillRect(left, top, size, size);
      pen.clearRect(left + 1, top + 1, size - 2, size - 2);
    }
    const inset = tile > 14 ? 0.5 : 0;
    for (const [at, gpu] of node.gpus.entries()) {
      pen.fillStyle = this.#colourOf(node, gpu);
      pen.fillRect(left + (at % cells) * width, top + Math.floor(at / cells) * height,
                   width - inset, height - inset);
    }
  }

  #colourOf(node, gpu) {
    if (!gpu.healthy) return this.#colours.bad;
    const taken = takenShare(gpu);
    if (taken === 0) return this.#colours.free;
    if (this.#by === 'use') return this.#colours.use[Math.min(STEPS - 1, Math.floor(taken * STEPS))];
    // The team with the largest part.
    const parts = segmentsOf(gpu, node.model).filter((part) => part.pods.length);
    if (parts.length === 0) return this.#colours.free;
    const largest = parts.reduce((best, part) => (part.size > best.size ? part : best));
    return this.#teamColour(teamOfPod(largest.pods[0]));
  }

  // Where in the map the cards below are.
  #drawFrame() {
    const {tile, columns} = this.#layout;
    const [first, last] = this.#window;
    const box = this.#canvas.parentElement;
    this.#frame.hidden = box.hidden || tile === 0 || last <= first || last - first >= this.#nodes.length;
    if (this.#frame.hidden) return;
    const top = Math.floor(first / columns) * tile;
    const bottom = (Math.floor((last - 1) / columns) + 1) * tile;
    const oneRow = bottom - top === tile;
    const {style} = this.#frame;
    style.top = `${top - 2}px`;
    style.height = `${bottom - top + 2}px`;
    style.left = `${oneRow ? (first % columns) * tile - 2 : -2}px`;
    style.width = `${oneRow ? (last - first) * tile + 2 : columns * tile + 2}px`;
  }

  #at(event) {
    const {tile, columns} = this.#layout;
    const column = Math.floor(event.offsetX / tile);
    if (column >= columns) return null;
    return this.#nodes[Math.floor(event.offsetY / tile) * columns + column] ?? null;
  }

  #onMove(event) {
    const node = this.#at(event);
    if (!node) {
      this.#tip.hide();
      return;
    }
    const sums = nodeSums(node);
    const teams = [...new Set(sums.pods.map(teamOfPod))].sort();
    this.#tip.showAt(event.clientX, event.clientY, el('div', {},
      el('p', {class: 'tip-title'}, el('strong', {}, node.name)),
      el('p', {class: 'quiet-text'}, [node.model, plural(sums.gpus, 'GPU')].filter(Boolean).join(' · ')),
      el('p', {}, `${formatGpus(Math.round((sums.gpus - sums.taken) * 1000))} GPUs free, ${plural(sums.pods.length, 'pod')}`),
      teams.length ? el('p', {class: 'quiet-text'}, teams.slice(0, 6).join(', ') + (teams.length > 6 ? ', …' : '')) : null,
      isClosed(node) ? el('p', {class: 'bad'}, node.closed?.text ?? 'not ready') : null));
  }
}
