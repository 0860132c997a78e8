// The order of a list by one of its columns. No document, no network.

// Rows by a key, ascending or descending; of equal keys by name; those whose key is null come last.
export function sortedBy(rows, keyOf, nameOf, descending) {
  const turn = descending ? -1 : 1;
  const ranked = rows.map((row) => ({row, key: keyOf(row), name: nameOf(row)}));
  ranked.sort((a, b) => {
    if ((a.key === null) !== (b.key === null)) return a.key === null ? 1 : -1;
    if (a.key !== b.key) return a.key < b.key ? -turn : turn;
    return a.name < b.name ? -1 : a.name > b.name ? 1 : 0;
  });
  return ranked.map(({row}) => row);
}

// What a word of an address means: 'gpus' or, the other way round, '-gpus'.
export const keyOfSort = (sort) => ({key: sort.replace(/^-/, ''), descending: sort.startsWith('-')});
