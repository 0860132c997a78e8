// When a pod that waits is expected to start: what the server has reckoned, in words. Nothing of it is
// promised, and where it gives no time, it says what stands in the way.

import {el} from './dom.js';
import {formatBetween, formatForeseen, formatSpan} from './format.js';
import {serverNow} from './store.js';

const HOW = 'Tranche plays the time to come through in a copy of itself, several times where it is not certain how long ' +
  'work runs. This is what came of it, not a promise: it changes with whatever comes and ends.';

const capital = (text) => text[0].toUpperCase() + text.slice(1);

// What the server says in few words.
const PLAINLY = {
  "not by anybody's end alone": 'not by other work ending; something else has to change',
  'not at all': 'not at all, as it asks now',
};

// [what stands in the way, the rest]: the rest is mostly why the pod waits, which lists say beside it.
function partsOf(because) {
  const [head, ...rest] = because.split(': ');
  return [PLAINLY[head] ?? head, rest.join(': ')];
}
const headOf = (because) => partsOf(because)[0];
const sentenceOf = (because) => `${capital(partsOf(because).filter(Boolean).join(': '))}.`;

// Eight times in ten it starts between `p10` and `p90`.
function spanWords({p10, p90}, now) {
  if (!p10) return null;
  if (!p90) return `likely from ${formatForeseen(p10, now)} on, nobody knows until when`;
  if (new Date(p90) <= now) return 'it is later than expected';
  if (new Date(p10) <= now) return p10 === p90 ? null : `likely by ${formatForeseen(p90, now)}`;
  const between = formatBetween(p10, p90, now);
  return between && `likely between ${between}`;
}

// {when, after, span, why}: the moment, or what stands for it; how long until then; what is likely; where
// no time is known, what stands in the way. Each may be null but the first.
export function startWords(pod, now) {
  const {forecast, reason, state} = pod;
  const until = (text) => `in ${formatSpan(new Date(text) - now)}`;
  if (forecast?.p50) {
    const near = new Date(forecast.p50) <= now;
    return {when: near ? 'any moment now' : formatForeseen(forecast.p50, now), after: near ? null : until(forecast.p50),
            span: spanWords(forecast, now), why: null};
  }
  if (!forecast && state === 'claimed') return {when: 'any moment now', after: null, span: null, why: null};
  const earliest = forecast?.earliest ?? reason?.eligibleAt ?? null;
  const why = forecast ? forecast.because : 'no forecast yet';
  if (!earliest || new Date(earliest) <= now) return {when: headOf(why), after: null, span: null, why};
  return {when: `not before ${formatForeseen(earliest, now)}`, after: until(earliest), span: null, why};
}

// For lists.
export function startCell(pod) {
  const {when, after, span, why} = startWords(pod, serverNow());
  const notes = [after, span, why && headOf(why) !== when ? headOf(why) : null].filter(Boolean);
  return el('div', {class: 'start'}, when, notes.length ? el('span', {class: 'quiet-text under'}, notes.join(', ')) : null);
}

function startLines(pod) {
  const {when, after, span, why} = startWords(pod, serverNow());
  const {forecast, reason} = pod;
  if (!forecast) {
    return [el('p', {class: 'start-when'}, capital([when, after].filter(Boolean).join(', '))),
            el('p', {class: 'quiet-text'}, 'It came after the last forecast. The next one tells more.')];
  }
  // A sentence is no headline.
  const head = when === headOf(forecast.because) ? null
    : el('p', {class: 'start-when'}, capital(when), after ? el('span', {}, `, ${after}`) : null);
  return [
    head,
    span ? el('p', {}, `${capital(span)}: eight chances in ten, as far as runtimes are known.`) : null,
    forecast.p50 && reason?.eligibleAt ? el('p', {}, `Not before ${formatForeseen(reason.eligibleAt, serverNow())}.`) : null,
    el('p', {}, sentenceOf(why ?? forecast.because)),
    el('p', {class: 'quiet-text small'}, HOW)];
}

// For the page of a pod.
export function startSection(pod) {
  return el('section', {class: 'card starts'}, el('h3', {}, 'Expected start'), startLines(pod));
}

// In one line, for facts.
export function startText(pod) {
  const {when, after, span} = startWords(pod, serverNow());
  return [when, after, span].filter(Boolean).join(', ');
}

// The pod that is expected last: the first of those without a time, if there is one.
export function lastToStart(pods) {
  return pods.find((pod) => !pod.forecast?.p50) ??
    pods.reduce((last, pod) => (pod.forecast.p50 > last.forecast.p50 ? pod : last));
}
