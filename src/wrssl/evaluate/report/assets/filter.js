// Which members match, and in which order.
const orders = new Map();

function ordered(key) {
  if (!orders.has(key)) {
    const [name, down] = key.split('-');
    const values = pool[name];
    const rows = Uint32Array.from({ length: data.members.count }, (_, i) => i);
    // Equal values: the highest ood_score first, then as in the pool.
    rows.sort((a, b) => (down ? values[b] - values[a] : values[a] - values[b]) || pool.ood_score[b] - pool.ood_score[a] || a - b);
    orders.set(key, rows);
  }
  return orders.get(key);
}

const isKept = (row, hundredths) => pool.weight[row] >= hundredths * (UNIT / 100);

const textOf = (row) => (data.texts && cellOf.has(row) ? data.texts.members[cellOf.get(row)].toLowerCase() : '');

function matching(wanted) {
  const found = [];
  const needle = wanted.search.toLowerCase();
  for (const row of ordered(wanted.sort)) {
    if (wanted.verdict !== '' && pool.verdict[row] !== Number(wanted.verdict)) continue;
    if (wanted.label !== '' && pool.label[row] !== Number(wanted.label)) continue;
    if (wanted.side !== 'all' && isKept(row, wanted.hundredths) !== (wanted.side === 'kept')) continue;
    if (wanted.pictured && !cellOf.has(row)) continue;
    if (needle && !pool.ids[row].toLowerCase().includes(needle) && !textOf(row).includes(needle)) continue;
    found.push(row);
  }
  return found;
}
