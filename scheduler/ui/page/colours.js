// Teams to colours: by a hash of the name, so that a team keeps its colour between visits. The
// palette (style.css, --team-0 ...) stays apart for people with colour-vision deficiencies; beyond
// it a second round adds stripes.

const COLOURS = 8;
const SLOTS = COLOURS * 2;
const slots = new Map();

function hash(text) {
  let value = 2166136261;
  for (const byte of new TextEncoder().encode(text)) {
    value = Math.imul(value ^ byte, 16777619);
  }
  return value >>> 0;
}

// Gives every new team the first free slot from its hash on; sorted input makes that repeatable.
export function assignColours(teams) {
  for (const team of teams) {
    if (slots.has(team)) continue;
    const used = new Set(slots.values());
    const first = hash(team) % COLOURS;
    let slot = first;
    for (let step = 0; step < SLOTS; ++step) {
      const candidate = (first + step) % COLOURS + (step >= COLOURS ? COLOURS : 0);
      if (!used.has(candidate)) {
        slot = candidate;
        break;
      }
    }
    slots.set(team, slot);
  }
}

export function colourClass(team) {
  const slot = slots.get(team) ?? hash(team) % COLOURS;
  return slot >= COLOURS ? `team-${slot - COLOURS} striped` : `team-${slot}`;
}

// The colour itself, for what is drawn on a canvas. Read anew when the theme changes.
export function colourValue(team) {
  const slot = (slots.get(team) ?? hash(team)) % COLOURS;
  return themeColour(`--team-${slot}`);
}

export function themeColour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
