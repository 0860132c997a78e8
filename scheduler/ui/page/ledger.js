// GPU-hours by team and model over a span of time, from the ledger; as chart, table and CSV.

import {readLedger, readSeries} from './api.js';
import {usageChart} from './charts.js';
import {colourClass, colourValue} from './colours.js';
import {button, el, emptyState, redraw} from './dom.js';
import {formatDay, formatHours, formatNumber} from './format.js';
import {cluster, serverNow} from './store.js';

const DAY_MS = 86400000;
const AGAIN_MS = 15000;
const NO_TEAM = 'no team';

const day = (date) => date.toISOString().slice(0, 10);

// Spans people ask for: [from, to) as dates in UTC.
const SPANS = {
  'Today': (now) => [now, now],
  'Last 7 days': (now) => [new Date(now.getTime() - 6 * DAY_MS), now],
  'Last 30 days': (now) => [new Date(now.getTime() - 29 * DAY_MS), now],
  'This month': (now) => [new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), 1)), now],
  'Last month': (now) => [new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - 1, 1)),
                          new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), 0))],
};

// After RFC 4180; a text that a spreadsheet would take for a formula gets an apostrophe before it.
export function csvOf(rows) {
  const cell = (text) => {
    const safe = /^[=+\-@\t\r]/.test(text) && !/^-?[\d.]+$/.test(text) ? `'${text}` : text;
    return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  return rows.map((row) => `${row.map((text) => cell(String(text))).join(',')}\r\n`).join('');
}

// Where sums of a lost ledger are in the report, that is said first.
function restoredNote(restored) {
  if (restored.length === 0) return [];
  const newest = restored.map((row) => row.checkpoint).sort().at(-1);
  return [el('p', {class: 'card', role: 'note', id: 'ledger-restored'},
             `An earlier ledger was lost. What it had is restored from its last checkpoint, of ${newest}: ` +
             'known as sums of a month, drawn evenly over their time. What ran between then and the loss is missing.')];
}

export class Ledger {
  #parts;
  #chart = null;
  #report = null;   // {rows, total, series, from, to} or {error, status}
  #asked = 0;
  #serial = 0;

  constructor(parts) {
    this.#parts = parts;
    parts.form.addEventListener('change', () => this.#ask());
    parts.form.addEventListener('submit', (event) => event.preventDefault());
    parts.presets.append(...Object.entries(SPANS).map(([name, span]) =>
      button({class: 'chip-button'}, () => {
        [parts.from.value, parts.to.value] = span(new Date(serverNow())).map(day);
        this.#ask();
      }, name)));
    parts.csv.addEventListener('click', () => this.#download());
  }

  show(visible) {
    // The server's clock comes with the reclaims.
    if (!visible || !cluster.known.has('reclaims')) return;
    if (!this.#parts.from.value && this.#asked === 0) {
      [this.#parts.from.value, this.#parts.to.value] =
        SPANS['Last 7 days'](new Date(serverNow())).map(day);
    }
    if (Date.now() - this.#asked > AGAIN_MS) this.#ask();
  }

  #span() {
    const from = new Date(`${this.#parts.from.value}T00:00:00Z`);
    const until = new Date(new Date(`${this.#parts.to.value}T00:00:00Z`).getTime() + DAY_MS);
    if (!(from < until)) return null;
    return {from, to: until};
  }

  async #ask() {
    const span = this.#span();
    this.#asked = Date.now();
    this.#serial += 1;
    const serial = this.#serial;
    if (!span) {
      this.#report = {error: 'expected a first day that is not after the last day, found another', status: 400};
      this.#draw();
      return;
    }
    const query = {from: span.from.toISOString(), to: span.to.toISOString()};
    const step = span.to - span.from <= 3 * DAY_MS ? 3600
      : Math.max(86400, Math.ceil((span.to - span.from) / DAY_MS / 366) * 86400);
    let report;
    try {
      const [sums, series] = await Promise.all([readLedger(query), readSeries({...query, step})]);
      report = {...sums, series, ...span};
    } catch (error) {
      report = {error: error.message, status: error.status ?? 0};
    }
    if (serial !== this.#serial) return;
    this.#report = report;
    this.#draw();
  }

  #draw() {
    const report = this.#report;
    const {body, csv} = this.#parts;
    csv.disabled = Boolean(report.error) || report.rows.length === 0;
    redraw(body, report.error ?? [report.rows, report.restored, report.series, report.from, report.to], () => {
      this.#chart = null;
      if (report.status === 404) {
        return emptyState('This server keeps no ledger', 'Started with --ledger FILE it writes down who ' +
                          'held which GPUs from when to when, and reports it here.');
      }
      if (report.error) return el('p', {class: 'bad', role: 'alert'}, report.error);
      if (report.rows.length === 0) {
        return emptyState('Nobody used a GPU in this time', 'Try another span of days.');
      }
      return this.#content(report);
    });
    if (this.#chart) this.#chart.chart.show(this.#chart.data);
  }

  #content(report) {
    const teams = new Map();
    for (const row of report.series.rows) {
      const team = row.leaf || NO_TEAM;
      const sum = teams.get(team) ?? row.gpuHours.map(() => 0);
      teams.set(team, sum.map((hours, at) => hours + Number(row.gpuHours[at])));
    }
    const start = new Date(report.series.from).getTime() / 1000;
    const rows = [...teams].sort().map(([team, hours]) => ({team, hours}));
    const data = {
      times: rows[0]?.hours.map((_, at) => start + at * report.series.stepSeconds) ?? [],
      rows, colours: rows.map(({team}) => colourValue(team)),
    };
    const plot = el('div', {class: 'chart', 'aria-hidden': 'true'});
    this.#chart = {chart: usageChart(plot), data};
    const total = Number(report.total);
    const most = Math.max(...report.rows.map((row) => Number(row.gpuHours)), 0.001);
    const line = (row) => {
      const share = el('span', {class: `share ${colourClass(row.leaf || NO_TEAM)}`});
      share.style.width = `${Math.max(0.5, 100 * Number(row.gpuHours) / most)}%`;
      return el('tr', {},
        el('td', {}, el('span', {class: `swatch ${colourClass(row.leaf || NO_TEAM)}`}), row.leaf || NO_TEAM),
        el('td', {}, row.model),
        el('td', {class: 'number'}, formatHours(row.gpuHours), row.restoredGpuHours
          ? el('div', {class: 'quiet-text'}, `${formatHours(row.restoredGpuHours)} restored`) : ''),
        el('td', {class: 'number quiet-text'}, total > 0 ? `${formatNumber(100 * Number(row.gpuHours) / total)} %` : '–'),
        el('td', {class: 'share-cell', 'aria-hidden': 'true'}, share));
    };
    return [
      ...restoredNote(report.restored ?? []),
      el('section', {class: 'card'}, el('h3', {}, report.series.stepSeconds < 86400
        ? 'GPU-hours in each hour, by team' : 'GPU-hours in each day, by team'), plot),
      el('section', {class: 'card'}, el('div', {class: 'table-box'}, el('table', {class: 'ledger-table'},
        el('caption', {}, `From ${formatDay(report.from)} to ${formatDay(new Date(report.to - 1))}, days in UTC`),
        el('thead', {}, el('tr', {}, el('th', {scope: 'col'}, 'Team'), el('th', {scope: 'col'}, 'GPU model'),
          el('th', {scope: 'col', class: 'number'}, 'Used'), el('th', {scope: 'col', class: 'number'}, 'Share'),
          el('th', {'aria-hidden': 'true'}))),
        el('tbody', {}, report.rows.map(line)),
        el('tfoot', {}, el('tr', {}, el('th', {scope: 'row', colspan: 2}, 'All together'),
          el('td', {class: 'number'}, el('strong', {}, formatHours(report.total))), el('td', {}), el('td', {}))))))];
  }

  #download() {
    const {rows, from, to} = this.#report;
    const text = csvOf([['team', 'model', 'gpu_hours', 'from', 'to', 'restored_gpu_hours'],
      ...rows.map((row) => [row.leaf, row.model, row.gpuHours, from.toISOString(), to.toISOString(),
                            row.restoredGpuHours ?? '0.000'])]);
    const link = el('a', {
      href: URL.createObjectURL(new Blob([text], {type: 'text/csv'})),
      download: `gpu-hours-${day(from)}-to-${day(new Date(to - 1))}.csv`,
    });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }
}
