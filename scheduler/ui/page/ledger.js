// GPU-hours by team and model over a span of time, from the ledger; as chart, table and CSV.

import {changeQuery} from './address.js';
import {readLedger, readSeries} from './api.js';
import {usageChart} from './charts.js';
import {colourClass, colourValue, isColoured} from './colours.js';
import {button, el, emptyState, redraw, table} from './dom.js';
import {formatDay, formatHours, formatMoment, formatNumber} from './format.js';
import {teamLink} from './links.js';
import {NO_TEAM} from './owners.js';
import {cluster, serverNow} from './store.js';

const DAY_MS = 86400000;
const AGAIN_MS = 15000;
const OTHERS = 'others';

const DAY = /^\d{4}-\d\d-\d\d$/;
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
             `An earlier ledger was lost. What it had is restored from its last checkpoint, of ${formatMoment(newest)}: ` +
             'known as sums of a month, drawn evenly over their time. What ran between then and the loss is missing.')];
}

export class Ledger {
  #parts;
  #chart = null;
  #report = null;   // {rows, total, series, from, to} or {error, status}
  #asked = 0;
  #serial = 0;
  #palette = '';

  constructor(parts) {
    this.#parts = parts;
    parts.form.addEventListener('change', () => this.#chosen());
    parts.form.addEventListener('submit', (event) => event.preventDefault());
    parts.presets.append(...Object.entries(SPANS).map(([name, span]) =>
      button({class: 'chip-button'}, () => {
        [parts.from.value, parts.to.value] = span(new Date(serverNow())).map(day);
        this.#chosen();
      }, name)));
    parts.csv.addEventListener('click', () => this.#download());
  }

  // Days as the address has them; without any, the last seven.
  setQuery(query) {
    const [from, to] = [query.get('from') ?? '', query.get('to') ?? ''];
    if (from === this.#parts.from.value && to === this.#parts.to.value) return;
    [this.#parts.from.value, this.#parts.to.value] = [from, to];
    this.#asked = 0;
  }

  #chosen() {
    changeQuery({from: this.#parts.from.value, to: this.#parts.to.value});
    this.#ask();
  }

  show(visible, palette) {
    this.#palette = palette;
    // The server's clock comes with the reclaims.
    if (!visible || !cluster.known.has('reclaims')) return;
    if (this.#report) this.#draw();
    if (!this.#parts.from.value && this.#asked === 0) {
      [this.#parts.from.value, this.#parts.to.value] =
        SPANS['Last 7 days'](new Date(serverNow())).map(day);
    }
    if (Date.now() - this.#asked > AGAIN_MS) this.#ask();
  }

  #span() {
    const from = new Date(`${this.#parts.from.value}T00:00:00Z`);
    const until = new Date(new Date(`${this.#parts.to.value}T00:00:00Z`).getTime() + DAY_MS);
    if (!DAY.test(this.#parts.from.value) || !DAY.test(this.#parts.to.value) || !(from < until)) return null;
    return {from, to: until};
  }

  async #ask() {
    const span = this.#span();
    this.#asked = Date.now();
    this.#serial += 1;
    const serial = this.#serial;
    if (!span) {
      this.#report = {error: 'expected two days like 2026-11-22, the first not after the last', status: 400};
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
    const data = report.error ?? [report.rows, report.restored, report.series, report.from, report.to, this.#palette];
    const drew = redraw(body, data, () => {
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
    if (drew && this.#chart) this.#chart.chart.show(this.#chart.data);
  }

  #content(report) {
    // The chart has the teams that have colours; the table has all.
    const grey = new Set(report.series.rows.map((row) => row.leaf || NO_TEAM).filter((team) => !isColoured(team)));
    const others = grey.size === 1 ? [...grey][0] : OTHERS;
    const teams = new Map();
    for (const row of report.series.rows) {
      const team = row.leaf || NO_TEAM;
      const shown = isColoured(team) ? team : others;
      const sum = teams.get(shown) ?? row.gpuHours.map(() => 0);
      teams.set(shown, sum.map((hours, at) => hours + Number(row.gpuHours[at])));
    }
    const start = new Date(report.series.from).getTime() / 1000;
    const rows = [...teams].sort(([a], [b]) => (a === others) - (b === others) || (a < b ? -1 : 1))
      .map(([team, hours]) => ({team, hours}));
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
      return [teamLink(row.leaf), row.model, el('div', {}, formatHours(row.gpuHours), row.restoredGpuHours
        ? el('div', {class: 'quiet-text'}, `${formatHours(row.restoredGpuHours)} restored`) : ''),
        total > 0 ? `${formatNumber(100 * Number(row.gpuHours) / total)} %` : '–',
        el('span', {class: 'share-box', 'aria-hidden': 'true'}, share)];
    };
    return [
      ...restoredNote(report.restored ?? []),
      el('section', {class: 'card'}, el('h3', {}, report.series.stepSeconds < 86400
        ? 'GPU-hours in each hour, by team' : 'GPU-hours in each day, by team'), plot),
      el('section', {class: 'card'},
        el('p', {class: 'quiet-text'}, `From ${formatDay(report.from)} to ${formatDay(new Date(report.to - 1))}, days in UTC: `,
           el('strong', {}, formatHours(report.total)), ' all together'),
        table(['Team', 'GPU model', ['Used', 'number'], ['Share', 'number'], {title: '', look: 'share-cell',
               head: el('span', {class: 'offscreen'}, 'Share as a bar')}],
              report.rows.map(line), {class: 'ledger-table'}))];
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
