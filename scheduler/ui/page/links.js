// Names that lead to the page of what they name.

import {gangHref, nodeHref, podHref, teamHref} from './address.js';
import {colourClass} from './colours.js';
import {el} from './dom.js';
import {NO_TEAM} from './owners.js';
import {teamIsDeclared} from './store.js';
import {asksText} from './words.js';

export function podLink(namespace, name, more = {}) {
  return el('a', {href: podHref(namespace, name), ...more}, name);
}

// ['ns', 'name'] of 'ns/name'.
export function splitName(text) {
  const slash = text.indexOf('/');
  return [text.slice(0, slash), text.slice(slash + 1)];
}

// From 'ns/name', shown in full or without the namespace.
export function podLinkOf(pod, {full = false} = {}) {
  const [namespace, name] = splitName(pod);
  return el('a', {href: podHref(namespace, name)}, full ? pod : name);
}

export function gangLink(namespace, name) {
  return el('a', {href: gangHref(namespace, name)}, name);
}

// What a pod that waits asks for, and with whom.
export function asksCell({namespace, asks}) {
  return el('div', {}, asksText(asks),
            asks?.gang ? el('span', {class: 'quiet-text under'}, 'gang ', gangLink(namespace, asks.gang)) : null);
}

export function nodeLink(name, gpu = null, text = name) {
  return name ? el('a', {href: nodeHref(name, gpu)}, text) : '–';
}

export const swatch = (team) => el('span', {class: `swatch ${colourClass(team)}`});

// The team with its colour. What is no quota has no page.
export function teamLink(team) {
  const name = team || NO_TEAM;
  return el('span', {class: 'team'}, swatch(name),
            teamIsDeclared(name) ? el('a', {href: teamHref(name)}, name) : name);
}
