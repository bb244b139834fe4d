// Lists of the whole pool, made here and saved by the browser; nothing is sent anywhere.
const quoted = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

function rowsByThreshold(hundredths, kept) {
  const rows = [];
  for (let row = 0; row < data.members.count; row += 1) {
    if (isKept(row, hundredths) === kept) rows.push(row);
  }
  return rows;
}

function idLines(hundredths, kept) {
  return rowsByThreshold(hundredths, kept).map((row) => `${pool.ids[row]}\n`).join('');
}

function csv(hundredths) {
  const lines = rowsByThreshold(hundredths, true).map(
    (row) => `${quoted(pool.ids[row])},${(pool.weight[row] / UNIT).toFixed(4)},${data.words[pool.verdict[row]]}\n`,
  );
  return `id,weight,verdict\n${lines.join('')}`;
}

function save(text, name, kind) {
  const address = URL.createObjectURL(new Blob([text], { type: `${kind};charset=utf-8` }));
  const link = element('a');
  link.href = address;
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}
