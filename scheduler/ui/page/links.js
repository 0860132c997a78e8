// Names that lead to the page of what they name.

import {nodeHref, podHref, teamHref} from './address.js';
import {colourClass} from './colours.js';
import {el} from './dom.js';
import {NO_TEAM} from './owners.js';
import {teamIsDeclared} from './store.js';

export function podLink(namespace, name, more = {}) {
  return el('a', {href: podHref(namespace, name), ...more}, name);
}

// From 'ns/name', shown in full or without the namespace.
export function podLinkOf(pod, {full = false} = {}) {
  const slash = pod.indexOf('/');
  const [namespace, name] = [pod.slice(0, slash), pod.slice(slash + 1)];
  return el('a', {href: podHref(namespace, name)}, full ? pod : name);
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
