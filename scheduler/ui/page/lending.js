// Who lends to whom, as a flow: lenders on the left, what they share in the middle, borrowers on the
// right. Lending goes through the group two teams have in common, so no pair is invented.

import {colourClass} from './colours.js';
import {el, emptyState, svg, table} from './dom.js';
import {formatNumber} from './format.js';
import {teamLink} from './links.js';
import {lineWord} from './words.js';

const WIDTH = 500;
const SIDE = 132;       // for the names
const LONGEST_NAME = 14;
const NODE = 12;
const TOP = 30;
const GAP = 14;
const UNIT = 92;  // height of all that flows

const total = (list) => list.reduce((sum, one) => sum + one.gpus, 0);

// {pool, model, lenders: [{name, gpus}], borrowers: [{name, gpus}]} of each group and model.
export function poolsOf(quotas) {
  const pools = new Map();
  for (const quota of quotas) {
    for (const line of quota.lines) {
      const key = JSON.stringify([quota.parent, lineWord(line)]);
      if (line.lentGpus <= 0 && line.borrowedGpus <= 0) continue;
      if (!pools.has(key)) {
        pools.set(key, {pool: quota.parent ?? 'all teams', model: lineWord(line), lenders: [], borrowers: []});
      }
      const pool = pools.get(key);
      if (line.lentGpus > 0) pool.lenders.push({name: quota.name, gpus: line.lentGpus});
      if (line.borrowedGpus > 0) pool.borrowers.push({name: quota.name, gpus: line.borrowedGpus});
    }
  }
  for (const pool of pools.values()) {
    // What no team of the group lends comes from what the group has for all.
    const rest = total(pool.borrowers) - total(pool.lenders);
    if (rest > 0.01) pool.lenders.push({name: `${pool.pool} itself`, gpus: rest, common: true});
  }
  return [...pools.values()];
}

function ribbon(x1, y1, x2, y2, height, look) {
  const middle = (x1 + x2) / 2;
  return svg('path', {
    class: `ribbon ${look}`,
    d: `M${x1},${y1} C${middle},${y1} ${middle},${y2} ${x2},${y2} V${y2 + height} ` +
       `C${middle},${y2 + height} ${middle},${y1 + height} ${x1},${y1 + height} Z`,
  });
}

function shorten(name) {
  return name.length > LONGEST_NAME ? `${name.slice(0, LONGEST_NAME - 1)}…` : name;
}

function column(list, scale, x, side, poolX) {
  const parts = [];
  let y = TOP;
  let poolY = TOP;
  for (const one of list) {
    const height = Math.max(3, one.gpus * scale);
    const look = one.common ? 'pool' : `fill-${colourClass(one.name)}`;
    parts.push(side === 'left' ? ribbon(x + NODE, y, poolX, poolY, height, look)
      : ribbon(poolX, poolY, x, y, height, look));
    parts.push(svg('rect', {class: look, x, y, width: NODE, height, rx: 2}));
    parts.push(svg('text', {
      x: side === 'left' ? x - 8 : x + NODE + 8, y: y + height / 2 + 4,
      'text-anchor': side === 'left' ? 'end' : 'start',
    }, svg('title', {}, one.name), `${shorten(one.name)}: ${formatNumber(one.gpus)}`));
    y += height + GAP;
    poolY += height;
  }
  return {parts, bottom: y, poolBottom: poolY};
}

function flow({pool, model, lenders, borrowers}) {
  const most = Math.max(total(lenders), total(borrowers), 0.001);
  const scale = UNIT / most;
  const [left, middle, right] = [SIDE, WIDTH / 2 - NODE / 2, WIDTH - SIDE - NODE];
  const from = column(lenders, scale, left, 'left', middle);
  const to = column(borrowers, scale, right, 'right', middle + NODE);
  const height = Math.max(from.bottom, to.bottom);
  const poolHeight = Math.max(from.poolBottom, to.poolBottom) - TOP;
  const label = `${formatNumber(total(lenders))} ${model} GPUs are lent by ` +
    `${lenders.map((one) => one.name).join(', ') || 'nobody'} and ${formatNumber(total(borrowers))} borrowed by ` +
    `${borrowers.map((one) => one.name).join(', ') || 'nobody'}, through ${pool}`;
  return el('figure', {class: 'flow'},
    el('figcaption', {}, `${model.replace(/^any/, 'Any')}, shared in ${pool}`),
    svg('svg', {viewBox: `0 0 ${WIDTH} ${height}`, role: 'img', 'aria-label': label},
      svg('text', {class: 'side', x: left + NODE, y: 16, 'text-anchor': 'end'}, 'lends (GPUs)'),
      svg('text', {class: 'side', x: right, y: 16, 'text-anchor': 'start'}, 'borrows (GPUs)'),
      from.parts, to.parts,
      svg('rect', {class: 'pool', x: middle, y: TOP, width: NODE, height: Math.max(poolHeight, 3), rx: 2}),
      svg('text', {class: 'side', x: WIDTH / 2, y: 16, 'text-anchor': 'middle'}, shorten(pool))));
}

export function lendingFlows(quotas) {
  const pools = poolsOf(quotas);
  if (pools.length === 0) {
    return emptyState('Nobody lends GPUs right now',
                      'When a team leaves GPUs idle, others of its group may use them; that shows here.');
  }
  const rows = pools.flatMap(({pool, model, lenders, borrowers}) => [
    ...lenders.map((one) => [teamLink(one.name), 'lends', formatNumber(one.gpus), model, pool]),
    ...borrowers.map((one) => [teamLink(one.name), 'borrows', formatNumber(one.gpus), model, pool])]);
  return [...pools.map(flow),
    el('details', {}, el('summary', {'data-key': 'flows'}, 'The same as a table'),
      table(['Team', 'What', ['GPUs', 'number'], 'Model', 'Through'], rows))];
}
