// Builds elements from data without ever parsing text as markup.

// Example: el('p', {class: 'empty', title: 'x'}, 'text', child)
export function el(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    element.setAttribute(key, value === true ? '' : String(value));
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

const counts = new Intl.NumberFormat('en');

export function formatCount(value) {
  return counts.format(value);
}

export function formatMemory(mib) {
  if (mib < 1024) return `${formatCount(mib)} MiB`;
  const gib = mib / 1024;
  return `${gib >= 100 ? Math.round(gib) : Math.round(gib * 10) / 10} GiB`;
}

// 1000 milli are one GPU.
export function formatGpus(milli) {
  const gpus = milli / 1000;
  if (Number.isInteger(gpus) || gpus >= 1000) return formatCount(Math.round(gpus));
  return gpus.toFixed(gpus < 10 ? 2 : 1);
}
