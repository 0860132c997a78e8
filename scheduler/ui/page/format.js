// Numbers and times as people read them, always with their unit.

const FAR_MS = 48 * 3600000;  // no minutes beyond: nobody knows them
const counts = new Intl.NumberFormat('en');
const moments = new Intl.DateTimeFormat('en-GB', {
  day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit',
});
// Days are those of the ledger, which counts in UTC.
const days = new Intl.DateTimeFormat('en-GB', {day: 'numeric', month: 'short', year: 'numeric', timeZone: 'UTC'});
const times = new Intl.DateTimeFormat('en-GB', {hour: '2-digit', minute: '2-digit'});
const dates = new Intl.DateTimeFormat('en-GB', {day: 'numeric', month: 'short'});
const clocks = new Intl.DateTimeFormat('en-GB', {hour: '2-digit', minute: '2-digit', second: '2-digit'});

export function formatCount(value) {
  return counts.format(value);
}

export function plural(count, one, many = `${one}s`) {
  return `${formatCount(count)} ${count === 1 ? one : many}`;
}

export function formatMemory(mib) {
  if (mib < 1024) return `${formatCount(mib)} MiB`;
  const gib = mib / 1024;
  return `${gib >= 100 ? Math.round(gib) : Math.round(gib * 10) / 10} GiB`;
}

// At most two decimals, none that say nothing: 8, 2.5, 0.25.
export function formatNumber(value) {
  const size = Math.abs(value);
  const decimals = size >= 1000 ? 0 : size >= 100 ? 1 : 2;
  return counts.format(Number(value.toFixed(decimals)));
}

// 1000 milli are one GPU.
export function formatGpus(milli) {
  return formatNumber(milli / 1000);
}

export const gpuCount = (milli) => (milli === 1000 ? '1 GPU' : `${formatGpus(milli)} GPUs`);

export function formatHours(hours) {
  const value = Number(hours);
  return `${value !== 0 && Math.abs(value) < 0.01 ? value.toFixed(3) : formatNumber(value)} GPU-h`;
}

// "45 s", "12 min", "3 h 20 min", "5 days"
export function formatSpan(milliseconds) {
  const seconds = Math.max(0, Math.round(milliseconds / 1000));
  if (seconds < 90) return `${seconds} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 90) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return minutes % 60 && hours < 10 ? `${hours} h ${minutes % 60} min` : `${hours} h`;
  return `${Math.round(hours / 24)} days`;
}

// GPU time that was lost: "40 GPU-s", "12 GPU-min", "3.2 GPU-h"
export function formatLost(gpuSeconds) {
  if (gpuSeconds < 120) return `${formatCount(gpuSeconds)} GPU-s`;
  if (gpuSeconds < 7200) return `${formatNumber(gpuSeconds / 60)} GPU-min`;
  return `${formatNumber(gpuSeconds / 3600)} GPU-h`;
}

export function formatMoment(text) {
  return text ? moments.format(new Date(text)) : '–';
}

const onOneDay = (a, b) => new Date(a).toDateString() === new Date(b).toDateString();

// A moment that is foreseen: "today 14:20", "27 Nov 14:20" soon, "3 Dec" later.
export function formatForeseen(text, now) {
  const at = new Date(text);
  if (onOneDay(at, now)) return `today ${times.format(at)}`;
  return at - now < FAR_MS ? `${dates.format(at)} ${times.format(at)}` : dates.format(at);
}

// "today 13:50 and 18:00", "27 Nov 13:50 and 4 Dec"; null where both are written alike.
export function formatBetween(from, to, now) {
  const start = formatForeseen(from, now);
  const end = formatForeseen(to, now);
  if (start === end) return null;
  return `${start} and ${onOneDay(from, to) ? times.format(new Date(to)) : end}`;
}

export function formatDay(date) {
  return days.format(date);
}

export function formatClock(date) {
  return date ? clocks.format(date) : 'never';
}

// "CET", or "UTC+1" where the zone has no name here.
export function zoneName() {
  const parts = new Intl.DateTimeFormat('en-GB', {timeZoneName: 'short'}).formatToParts(new Date());
  return parts.find(({type}) => type === 'timeZoneName')?.value ?? 'local time';
}
