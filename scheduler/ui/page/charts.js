// Charts over time, drawn by uPlot. Colours come from the style sheet; the numbers behind a chart
// are always on the page as a table as well.

import uPlot from 'uplot';

import {themeColour} from './colours.js';
import {formatNumber} from './format.js';

const charts = new Set();
const widths = new ResizeObserver((entries) => {
  for (const {target} of entries) {
    for (const chart of charts) {
      if (chart.root === target && target.clientWidth > 0) chart.fit();
    }
  }
});

class Chart {
  constructor(root, make) {
    this.root = root;
    this.make = make;
    this.plot = null;
    this.data = null;
    charts.add(this);
    widths.observe(root);
  }

  show(data) {
    this.data = data;
    this.draw();
  }

  draw() {
    if (!this.data || this.root.clientWidth === 0) return;
    this.plot?.destroy();
    const {options, columns} = this.make(this.data);
    this.plot = new uPlot({...options, width: this.root.clientWidth}, columns, this.root);
  }

  fit() {
    if (!this.plot) this.draw();
    else this.plot.setSize({width: this.root.clientWidth, height: this.plot.height});
  }
}

export function redrawCharts() {
  for (const chart of charts) {
    if (chart.root.isConnected) chart.draw();
    else charts.delete(chart);
  }
}

const FONT = '12px system-ui, "Liberation Sans", sans-serif';

function axes(unit) {
  const look = {
    stroke: themeColour('--quiet'), font: FONT,
    grid: {stroke: themeColour('--grid'), width: 1}, ticks: {stroke: themeColour('--grid'), width: 1},
  };
  // As wide as the longest number: nothing is cut.
  const size = (plot, values) => 24 + 8 * Math.max(0, ...(values ?? []).map((text) => text.length));
  return [look, {...look, size, values: (plot, values) =>
    values.map((value, at) => (at === values.length - 1 ? `${formatNumber(value)} ${unit}` : formatNumber(value)))}];
}

const isKnown = (one) => one !== null && one !== undefined;

// A line between its points; null outside of them.
function between(times, values, at) {
  if (isKnown(values[at])) return values[at];
  const before = values.findLastIndex((one, position) => position < at && isKnown(one));
  const after = values.findIndex((one, position) => position > at && isKnown(one));
  if (before < 0 || after < 0) return null;
  const part = (times[at] - times[before]) / (times[after] - times[before]);
  return values[before] + part * (values[after] - values[before]);
}

// Where nothing is pointed at, the legend tells the moment at which the first line ends: now.
const value = (unit) => (plot, raw, series, position) => {
  const at = position ?? plot.data[1].findLastIndex(isKnown);
  const shown = between(plot.data[0], plot.data[series], at);
  return shown === null ? '–' : `${formatNumber(shown)} ${unit}`;
};
const hour24 = {hour: '2-digit', minute: '2-digit', day: 'numeric', month: 'short'};
const moment = (plot, raw) => (raw ? new Intl.DateTimeFormat('en-GB', hour24).format(raw * 1000) : 'now');
const utcMoment = (plot, raw) => (raw
  ? `${new Intl.DateTimeFormat('en-GB', {...hour24, timeZone: 'UTC'}).format(raw * 1000)} UTC` : 'all together');
const DAY = 86400;
const stamps = [
  // tick step, format, and what is added where the next larger unit changes
  [3600 * 24 * 365, '{YYYY}', null, null, null, null, null, null, 1],
  [3600 * 24 * 28, '{MMM}', '\n{YYYY}', null, null, null, null, null, 1],
  [3600 * 24, '{D} {MMM}', '\n{YYYY}', null, null, null, null, null, 1],
  [60, '{HH}:{mm}', '\n{D} {MMM}', null, '\n{D} {MMM}', null, null, null, 1],
  [1, '{HH}:{mm}:{ss}', '\n{D} {MMM}', null, '\n{D} {MMM}', null, null, null, 1],
];

// Hours left of a budget. Data: {points: [{at, left}], even: [[at, left], [at, left]],
// projection: [[at, left], ...] or null, now}; times in seconds.
export function burnDownChart(root) {
  return new Chart(root, (data) => {
    const lines = [data.points.map(({at, left}) => [at, left]), data.even, data.projection ?? []];
    const times = [...new Set(lines.flat().map(([at]) => at))].sort((a, b) => a - b);
    const columns = [times, ...lines.map((line) => {
      const known = new Map(line);
      return times.map((at) => known.get(at) ?? null);
    })];
    const [x, y] = axes('GPU-h');
    const series = (label, colour, more) => ({
      label, stroke: themeColour(colour), width: 2, spanGaps: true, points: {show: false},
      value: value('GPU-h'), ...more});
    return {
      columns,
      options: {
        height: 210, padding: [10, 14, 0, 0],
        cursor: {y: false}, scales: {y: {range: (plot, low, high) => [0, Math.max(high, 0.001) * 1.04]}},
        series: [{value: moment},
                 series('left', '--accent', {fill: themeColour('--accent-soft')}),
                 series('even pace', '--quiet', {dash: [3, 5], width: 1.5}),
                 series('at the present rate', '--warn', {dash: [8, 5]})],
        axes: [{...x, values: stamps}, y],
      },
    };
  });
}

// GPU-hours by team, stacked bars. Data: {times: [seconds], rows: [{team, hours: []}], colours}.
export function usageChart(root) {
  return new Chart(root, (data) => {
    const stacked = [];
    let below = data.times.map(() => 0);
    for (const row of data.rows) {
      below = below.map((sum, at) => sum + row.hours[at]);
      stacked.push(below);
    }
    const step = data.times.length > 1 ? data.times[1] - data.times[0] : 3600;
    const [x, y] = axes('GPU-h');
    const bars = uPlot.paths.bars({size: [0.88, 160], align: 1});
    // The tallest first, so that each lies before what is stacked on it.
    const order = data.rows.map((_, at) => at).reverse();
    return {
      columns: [data.times, ...order.map((at) => stacked[at])],
      options: {
        height: 240, padding: [10, 26, 0, 0], cursor: {y: false},
        // The ledger's days are those of UTC.
        tzDate: (at) => uPlot.tzDate(new Date(at * 1000), 'Etc/UTC'),
        scales: {
          x: {range: () => [data.times[0], data.times.at(-1) + step]},
          y: {range: (plot, low, high) => [0, Math.max(high, 0.001) * 1.05]},
        },
        series: [{value: utcMoment}, ...order.map((at) => ({
          label: data.rows[at].team, stroke: data.colours[at], fill: data.colours[at], width: 0,
          paths: bars, points: {show: false},
          value: (plot, raw, series, position) => `${formatNumber(data.rows[at].hours[position] ??
            data.rows[at].hours.reduce((sum, hours) => sum + hours, 0))} GPU-h`}))],
        axes: [{...x, values: stamps, ...(step >= DAY ? {incrs: [1, 2, 7, 14, 30, 61].map((days) => days * DAY)} : {})}, y],
      },
    };
  });
}
