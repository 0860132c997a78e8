// Teams to colours. The eight largest teams have one each, by a hash of the name, so that a team
// keeps its colour between visits; all others are grey. The palette (theme.css, --team-0 ...) stays
// apart for people with colour-vision deficiencies: more colours would not.

const COLOURS = 8;
const slots = new Map();

function hash(text) {
  let value = 2166136261;
  for (const byte of new TextEncoder().encode(text)) {
    value = Math.imul(value ^ byte, 16777619);
  }
  return value >>> 0;
}

// `teams`: largest first. A team that stays among the first eight keeps its colour. Returns whether
// any colour has changed.
export function assignColours(teams) {
  const largest = new Set(teams.slice(0, COLOURS));
  let changed = false;
  for (const team of [...slots.keys()]) {
    if (!largest.has(team)) changed = slots.delete(team);
  }
  const fresh = [...largest].filter((team) => !slots.has(team)).sort();
  const taken = () => new Set(slots.values());
  // Everybody's own colour first; who finds it taken gets the next that is left.
  for (const team of fresh) {
    if (!taken().has(hash(team) % COLOURS)) slots.set(team, hash(team) % COLOURS);
  }
  for (const team of fresh) {
    if (slots.has(team)) continue;
    const used = taken();
    let slot = hash(team) % COLOURS;
    while (used.has(slot)) slot = (slot + 1) % COLOURS;
    slots.set(team, slot);
  }
  return changed || fresh.length > 0;
}

export const isColoured = (team) => slots.has(team);

export function colourClass(team) {
  return slots.has(team) ? `team-${slots.get(team)}` : 'team-other';
}

// The colour itself, for what is drawn on a canvas. Read anew when the theme changes.
export function colourValue(team) {
  return themeColour(`--${colourClass(team)}`);
}

export function themeColour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
