// The fleet as a grid of node cards. Only cards near the viewport exist as elements, so thousands
// of nodes cost no more than a screenful; one GPU at a time is in the tab order, arrows move on, and
// Enter opens the node's page.

import {nodeHref} from './address.js';
import {colourClass} from './colours.js';
import {el} from './dom.js';
import {formatGpus, formatMemory, plural} from './format.js';
import {drawingOrder, isClosed, podsOfInstance, segmentsOf, takenShare} from './model.js';
import {podEntry, teamOfPod} from './store.js';
import {closedText, knowledgeWords, quotaWords} from './words.js';

const CARD_MIN_WIDTH = 330;
const CARD_HEIGHT = 180;
const GAP = 12;
const HEAD_HEIGHT = 30;
const STICKY = 52;  // height of the header, which lies over the cards
// The end of a name tells machines apart: it stays when there is no room for the whole.
const NAME_TAIL = 9;
const OVERSCAN_ROWS = 2;

export class Fleet {
  #root;
  #tip;
  #nodes = [];
  #groups = [];  // {label, count} of nodes in their order; no label: one group without a head
  #rows = [];    // {top, height, from, count} of cards, {top, height, group} of heads
  #heads = new Map();  // label -> element
  #team = '';
  #palette = '';
  #cards = new Map();  // node name -> {element, signature}
  #columns = 1;
  #cursor = {node: null, gpu: 0};
  #pending = false;
  #onWindow;
  #toldBefore = null;  // what the tooltip told of when a finger came down

  // `onWindow(first, last)`: which nodes are in view.
  constructor(root, tip, onWindow) {
    this.#root = root;
    this.#tip = tip;
    this.#onWindow = onWindow;
    for (const kind of ['scroll', 'resize']) {
      window.addEventListener(kind, () => this.#schedule(), {passive: true});
    }
    new ResizeObserver(() => this.#schedule()).observe(root);
    root.addEventListener('keydown', (event) => this.#onKey(event));
    root.addEventListener('focusin', (event) => this.#onTarget(event, true));
    root.addEventListener('focusout', () => tip.hide());
    root.addEventListener('mouseover', (event) => this.#onTarget(event, false));
    root.addEventListener('mouseleave', () => tip.hide());
    root.addEventListener('pointerdown', () => { this.#toldBefore = tip.anchor; });
    root.addEventListener('click', (event) => this.#onClick(event));
  }

  // `groups`: how `nodes` are divided, in their order. `palette`: changes when colours or teams do.
  show(nodes, groups, team, palette) {
    this.#nodes = nodes;
    this.#groups = groups;
    this.#team = team;
    this.#palette = palette;
    if (!nodes.some((node) => node.name === this.#cursor.node)) {
      this.#cursor = {node: nodes.find((node) => node.gpus.length)?.name ?? null, gpu: 0};
    }
    this.#draw();
  }

  // Brings a node into view and puts the focus on its first GPU.
  reveal(name) {
    const node = this.#nodes.find((candidate) => candidate.name === name);
    if (!node) return;
    this.#cursor = {node: name, gpu: drawingOrder(node).order[0] ?? 0};
    window.scrollBy(0, this.#topOf(name) - window.innerHeight / 3);
    this.#draw();
    this.#focus(name, this.#cursor.gpu);
  }

  #schedule() {
    if (this.#pending) return;
    this.#pending = true;
    requestAnimationFrame(() => {
      this.#pending = false;
      this.#draw();
    });
  }

  // Where the rows are: cards side by side, each group under its head.
  #arrange() {
    this.#rows = [];
    let top = 0;
    let from = 0;
    for (const group of this.#groups) {
      if (group.label) {
        if (top > 0) top += GAP;
        this.#rows.push({top, height: HEAD_HEIGHT, group});
        top += HEAD_HEIGHT + GAP;
      }
      for (let at = 0; at < group.count; at += this.#columns) {
        const count = Math.min(this.#columns, group.count - at);
        this.#rows.push({top, height: CARD_HEIGHT, from: from + at, count});
        top += CARD_HEIGHT + GAP;
      }
      from += group.count;
    }
    this.#root.style.height = `${Math.max(0, top - GAP)}px`;
  }

  // Of a node's row, in the window.
  #topOf(name) {
    const position = this.#nodes.findIndex((node) => node.name === name);
    const row = this.#rows.find(({from, count}) => from <= position && position < from + count);
    return this.#root.getBoundingClientRect().top + (row?.top ?? 0);
  }

  #draw() {
    const width = this.#root.clientWidth;
    if (width === 0) return;  // another view is shown
    this.#columns = Math.max(1, Math.floor((width + GAP) / (CARD_MIN_WIDTH + GAP)));
    this.#arrange();
    const top = -this.#root.getBoundingClientRect().top;
    const bottom = top + window.innerHeight;
    const within = (above) => this.#rows.filter((row) => row.top + row.height > top - above && row.top < bottom + above);
    const seen = within(0).filter((row) => row.count);
    this.#onWindow(seen[0]?.from ?? 0, seen.length ? seen.at(-1).from + seen.at(-1).count : 0);

    const wanted = new Set();
    const heads = new Set();
    const cardWidth = (width - GAP * (this.#columns - 1)) / this.#columns;
    for (const row of within(OVERSCAN_ROWS * CARD_HEIGHT)) {
      if (row.group) {
        heads.add(row.group.label);
        this.#placeHead(row);
      }
      for (let column = 0; column < (row.count ?? 0); ++column) {
        wanted.add(this.#nodes[row.from + column].name);
        this.#place(row.from + column, cardWidth, column * (cardWidth + GAP), row.top);
      }
    }
    for (const [name, card] of this.#cards) {
      if (wanted.has(name)) continue;
      if (card.element.contains(this.#tip.anchor)) this.#tip.hide();
      card.element.remove();
      this.#cards.delete(name);
    }
    for (const [label, element] of this.#heads) {
      if (heads.has(label)) continue;
      element.remove();
      this.#heads.delete(label);
    }
  }

  #placeHead({top, group}) {
    let element = this.#heads.get(group.label);
    if (!element) {
      element = el('div', {class: 'group-head', role: 'listitem'}, el('h3', {}, group.label), el('span', {class: 'quiet-text'}));
      this.#heads.set(group.label, element);
      this.#root.append(element);
    }
    const text = `${plural(group.count, 'node')}, ${group.note}`;
    if (element.lastChild.textContent !== text) element.lastChild.textContent = text;
    element.style.transform = `translate(0, ${top}px)`;
  }

  #place(position, width, left, top) {
    const node = this.#nodes[position];
    const current = this.#cursor.node === node.name;
    let card = this.#cards.get(node.name);
    if (!card) {
      card = {element: el('div', {class: 'node', role: 'listitem'})};
      this.#cards.set(node.name, card);
      this.#root.append(card.element);
    }
    // A node is another object as soon as anything of it has changed.
    if (card.node !== node || card.team !== this.#team || card.current !== current ||
        card.palette !== this.#palette) {
      Object.assign(card, {node, team: this.#team, current, palette: this.#palette});
      this.#refill(card.element, node);
    }
    const {style} = card.element;
    style.width = `${width}px`;
    style.height = `${CARD_HEIGHT}px`;
    style.transform = `translate(${left}px, ${top}px)`;
    card.element.setAttribute('aria-posinset', String(position + 1));
    card.element.setAttribute('aria-setsize', String(this.#nodes.length));
  }

  // Replaces the content; focus and tooltip stay on the GPU they were on.
  #refill(element, node) {
    const focused = element.contains(document.activeElement);
    const pointed = element.contains(this.#tip.anchor) ? this.#tip.anchor.dataset.gpu : null;
    element.classList.toggle('closed', isClosed(node));
    element.setAttribute('aria-label', node.name);
    element.replaceChildren(...this.#content(node));
    if (focused) this.#focus(node.name, this.#cursor.gpu);
    if (pointed !== null) this.#describe(element.querySelector(`[data-gpu="${pointed}"]`));
  }

  #content(node) {
    const {order, groups} = drawingOrder(node);
    const joined = new Map();  // position -> group number
    groups.forEach((group, number) => {
      for (let at = group.from; at < group.from + group.count; ++at) joined.set(order[at], number);
    });
    const boxes = [];
    for (const [number, group] of groups.entries()) {
      const members = order.slice(group.from, group.from + group.count);
      const box = el('div', {class: 'link-group'},
        el('div', {class: 'gpus'}, members.map((at) => this.#cell(node, node.gpus[at], at))),
        el('div', {class: 'bracket', 'aria-hidden': 'true'},
           el('span', {}, groups.length > 1 ? `NVLink ${String.fromCharCode(65 + number % 26)}` : 'NVLink')));
      box.style.flexGrow = String(group.count);
      boxes.push(box);
    }
    const rest = order.filter((at) => !joined.has(at));
    if (rest.length) {
      const box = el('div', {class: 'link-group'},
        el('div', {class: 'gpus'}, rest.map((at) => this.#cell(node, node.gpus[at], at))));
      box.style.flexGrow = String(rest.length);
      boxes.push(box);
    }
    const shape = node.gpus.length
      ? `${node.model || 'unknown model'} · ${node.gpus.length} × ` +
        formatMemory(node.gpus[0].memoryMiB)
      : 'no GPU seen';
    const free = node.gpus.reduce((sum, gpu) => sum + Math.round(1000 * (1 - takenShare(gpu))), 0);
    const [knowledge, meaning] = knowledgeWords(node.knowledge);
    return [
      el('div', {class: 'node-head'}, el('h3', {title: node.name}, el('a', {href: nodeHref(node.name), tabindex: -1},
           el('span', {class: 'name-start'}, node.name.slice(0, -NAME_TAIL)),
           el('span', {class: 'name-end'}, node.name.slice(-NAME_TAIL)))),
         el('span', {class: 'shape', title: shape}, shape)),
      el('div', {class: 'groups', role: 'group', 'aria-label': `GPUs of ${node.name}`}, boxes),
      el('div', {class: 'node-foot'},
         isClosed(node)
           ? el('span', {class: 'state bad', title: node.closed?.detail || ''}, closedText(node))
           : el('span', {class: 'state good'}, 'ready'),
         el('span', {class: 'chip', title: meaning}, knowledge),
         problemsMark(node),
         el('span', {class: 'free'}, `${formatGpus(free)} of ${plural(node.gpus.length, 'GPU')} free`)),
    ];
  }

  #cell(node, gpu, position) {
    const current = this.#cursor.node === node.name && this.#cursor.gpu === position;
    const cell = el('button', {
      type: 'button',
      class: `gpu${gpu.healthy ? '' : ' unhealthy'}${gpu.mig ? ' mig' : ''}`,
      tabindex: current ? 0 : -1,
      'data-node': node.name,
      'data-gpu': position,
      'aria-label': spoken(node, gpu, position),
    });
    for (const segment of segmentsOf(gpu, node.model)) {
      const teams = [...new Set(segment.pods.map(teamOfPod))];
      const dimmed = this.#team && !teams.includes(this.#team);
      const look = teams.length === 0 ? 'slot' : colourClass(teams[0]);
      const part = el('span', {class: `part ${look}${dimmed ? ' dimmed' : ''}`});
      part.style.bottom = `${segment.from * 100}%`;
      part.style.height = `${segment.size * 100}%`;
      cell.append(part);
    }
    if (!gpu.healthy) cell.append(el('span', {class: 'mark', 'aria-hidden': 'true'}, '!'));
    const label = el('span', {class: 'gpu-number', 'aria-hidden': 'true'}, gpuLabel(gpu));
    return el('div', {class: 'slot-box'}, cell, label);
  }

  #onTarget(event, moves) {
    const cell = event.target.closest?.('.gpu');
    if (!cell) {
      if (!moves) this.#tip.hide();
      return;
    }
    if (moves) this.#cursor = {node: cell.dataset.node, gpu: Number(cell.dataset.gpu)};
    this.#describe(cell);
  }

  // A finger has no pointer to rest: its first tap tells, its second opens.
  #onClick(event) {
    const cell = event.target.closest?.('.gpu');
    if (!cell) return;
    if (event.pointerType === 'touch' && this.#toldBefore !== cell) {
      this.#onTarget(event, false);
      return;
    }
    location.hash = nodeHref(cell.dataset.node, Number(cell.dataset.gpu));
  }

  async #describe(cell) {
    const node = this.#nodes.find((candidate) => candidate.name === cell?.dataset.node);
    const gpu = node?.gpus[Number(cell?.dataset.gpu)];
    if (!gpu) {
      this.#tip.hide();
      return;
    }
    this.#tip.show(cell, description(node, gpu, new Map()));
    const pods = [...new Set(segmentsOf(gpu, node.model).flatMap((segment) => segment.pods))];
    const entries = await Promise.all(pods.slice(0, 8).map(podEntry));
    if (this.#tip.anchor !== cell) return;
    const known = new Map(pods.map((pod, at) => [pod, entries[at]]));
    this.#tip.show(cell, description(node, gpu, known));
  }

  #onKey(event) {
    const steps = {ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [this.#columns, 0],
                   ArrowUp: [-this.#columns, 0]};
    const position = this.#nodes.findIndex((node) => node.name === this.#cursor.node);
    if (position < 0) return;
    let target = null;
    if (event.key in steps) {
      const [nodes, gpus] = steps[event.key];
      target = nodes ? this.#shift(position, nodes) : this.#step(position, gpus);
    } else if (event.key === 'Home') {
      target = this.#shift(-1, 1);
    } else if (event.key === 'End') {
      target = this.#shift(this.#nodes.length, -1);
    }
    if (!target) return;
    event.preventDefault();
    this.#cursor = target;
    this.#follow(target.node);
    this.#focus(target.node, target.gpu);
  }

  // The neighbouring GPU of the same node as drawn, else the nearest GPU of the next node with any.
  #step(position, direction) {
    const node = this.#nodes[position];
    const {order} = drawingOrder(node);
    const at = order.indexOf(this.#cursor.gpu) + direction;
    if (at >= 0 && at < order.length) return {node: node.name, gpu: order[at]};
    const next = this.#shift(position, direction);
    if (!next) return null;
    const {order: others} =
      drawingOrder(this.#nodes.find((candidate) => candidate.name === next.node));
    return {node: next.node, gpu: others.at(direction > 0 ? 0 : -1)};
  }

  #shift(position, by) {
    for (let at = position + by; at >= 0 && at < this.#nodes.length; at += by) {
      const node = this.#nodes[at];
      if (node.gpus.length === 0) continue;
      return {node: node.name, gpu: Math.min(this.#cursor.gpu, node.gpus.length - 1)};
    }
    return null;
  }

  #follow(name) {
    const top = this.#topOf(name);
    if (top < STICKY) window.scrollBy(0, top - STICKY - GAP);
    const below = top + CARD_HEIGHT - window.innerHeight;
    if (below > 0) window.scrollBy(0, below + GAP);
    this.#draw();
  }

  #focus(name, gpu) {
    for (const cell of this.#root.querySelectorAll('.gpu[tabindex="0"]')) cell.tabIndex = -1;
    const cell = this.#cards.get(name)?.element.querySelector(`[data-gpu="${gpu}"]`);
    if (!cell) return;
    cell.tabIndex = 0;
    cell.focus({preventScroll: true});
    this.#describe(cell);
  }
}

// What the node says about itself and could not be read.
function problemsMark(node) {
  const problems = node.problems ?? [];
  if (problems.length === 0) return null;
  const text = problems.join('; ');
  return el('span', {class: 'problems', title: text, 'aria-label': text},
            problems.length === 1 ? '1 problem' : `${problems.length} problems`);
}

function gpuLabel(gpu) {
  return gpu.index === null || gpu.index === undefined ? '' : String(gpu.index);
}

function gpuTitle(gpu) {
  return gpu.index === null || gpu.index === undefined ? 'GPU, index unknown' : `GPU ${gpu.index}`;
}

function spoken(node, gpu, position) {
  const pods = new Set(segmentsOf(gpu, node.model).flatMap((segment) => segment.pods));
  const taken = Math.round(takenShare(gpu) * 100);
  return `${node.name}, GPU ${gpu.index ?? position}, ${taken} percent taken` +
    (gpu.healthy ? '' : ', unhealthy') + (pods.size ? `, ${[...pods].join(', ')}` : '');
}

// `entries`: pod -> the API's entry, as far as it is known.
function description(node, gpu, entries) {
  const rows = gpu.mig ? instanceRows(gpu) : podRows(gpu);
  const facts = [node.model, formatMemory(gpu.memoryMiB)];
  if (gpu.numa !== null && gpu.numa !== undefined) facts.push(`CPU socket group (NUMA) ${gpu.numa}`);
  if (gpu.replicas > 1) facts.push(`time-shared by up to ${gpu.replicas} pods`);
  if (gpu.mig) facts.push('cut into MIG slices');
  const states = [...new Set([...entries.values()].map((entry) => entry?.quotaState).filter(Boolean))];
  const borrowers = [...entries].filter(([, entry]) =>
    entry?.quotaState && entry.quotaState !== 'in-quota');
  const standing = states.length === 1
    ? `${rows.length > 1 ? 'All run' : 'Runs'} ${quotaWords(states[0])[1]}.`
    : borrowers.map(([pod, entry]) => `${pod.slice(pod.indexOf('/') + 1)} runs ` +
        `${quotaWords(entry.quotaState)[1]}.`).join(' ');
  return el('div', {},
    el('p', {class: 'tip-title'}, el('strong', {}, gpuTitle(gpu)), ` on ${node.name}`),
    el('p', {class: 'quiet-text'}, facts.filter(Boolean).join(' · ')),
    gpu.healthy ? null : el('p', {class: 'bad'}, 'Unhealthy: takes no new pods.'),
    rows.length
      ? el('table', {class: 'tip-table'}, el('thead', {}, el('tr', {},
          ['Pod', 'Team', 'Share', gpu.mig ? 'Place' : 'Memory'].map((title) => el('th', {}, title)))),
          el('tbody', {}, rows))
      : el('p', {}, 'No pod uses it.'),
    standing ? el('p', {}, standing) : null,
    gpu.mig ? null : el('p', {class: 'quiet-text'},
       `Free: ${gpu.freeMilli / 10} % of compute, ${formatMemory(gpu.freeMiB)}`),
    node.nvlink ? el('p', {class: 'quiet-text'},
       `Links: ${node.nvlink.text}${node.nvlink.verified ? '' : ' (by its type, not seen on the node)'}`)
       : null,
    gpu.uuid ? el('p', {class: 'uuid'}, gpu.uuid) : null,
    node.knowledge === 'counts'
      ? el('p', {class: 'quiet-text'}, 'Which GPU of the node a pod really has is not known here.')
      : null);
}

function podRows(gpu) {
  return gpu.pods.map((pod) => podRow(pod.pod, `${pod.milli / 10} %`, formatMemory(pod.mib)));
}

function instanceRows(gpu) {
  return gpu.mig.flatMap((instance) => {
    const pods = podsOfInstance(instance);
    const where = instance.size > 1
      ? `units ${instance.start}–${instance.start + instance.size - 1}` : `unit ${instance.start}`;
    if (pods.length) return pods.map((pod) => podRow(pod, instance.profile, where));
    return [el('tr', {class: 'quiet-text'}, el('td', {}, 'free'), el('td'),
               el('td', {}, instance.profile), el('td', {}, where))];
  });
}

function podRow(pod, share, amount) {
  const team = teamOfPod(pod);
  return el('tr', {},
    el('td', {}, el('span', {class: `swatch ${colourClass(team)}`}), pod.slice(pod.indexOf('/') + 1)),
    el('td', {class: 'quiet-text'}, team), el('td', {}, share), el('td', {}, amount));
}
