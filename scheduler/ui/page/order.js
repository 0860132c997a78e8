// The order of a list by one of its columns. No document, no network.

// Rows by a key, ascending or descending; of equal keys by name, or as they were where `nameOf` is null; those whose key
// is null come last.
export function sortedBy(rows, keyOf, nameOf, descending) {
  const turn = descending ? -1 : 1;
  const keys = rows.map(keyOf);
  const names = nameOf ? rows.map(nameOf) : [];
  const order = rows.map((_, at) => at);
  order.sort((a, b) => {
    const one = keys[a];
    const two = keys[b];
    if (one !== two) {
      if (one === null) return 1;
      if (two === null) return -1;
      return one < two ? -turn : turn;
    }
    return names[a] < names[b] ? -1 : names[a] > names[b] ? 1 : a - b;
  });
  return order.map((at) => rows[at]);
}

// What a word of an address means: 'gpus' or, the other way round, '-gpus'.
export const keyOfSort = (sort) => ({key: sort.replace(/^-/, ''), descending: sort.startsWith('-')});
