// The pool as the page holds it: columns of whole numbers, and the ids.
const data = JSON.parse(document.getElementById('data').textContent);
const UNIT = 10000; // weights and scores are stored in ten thousandths, weights rounded down

function unpack(column) {
  const text = atob(column.data);
  const numbers = new Uint16Array(text.length / column.bytes);
  for (let i = 0; i < numbers.length; i += 1) {
    const at = i * column.bytes;
    numbers[i] = text.charCodeAt(at) + (column.bytes === 2 ? 256 * text.charCodeAt(at + 1) : 0);
  }
  return numbers;
}

// An id is written as the number of characters that it takes over from the one before, and the rest.
function unpackIds(coded, count) {
  const ids = new Array(count);
  let before = '';
  for (let i = 0; i < count; i += 1) {
    before = coded ? before.slice(0, coded[2 * i]) + coded[2 * i + 1] : String(i);
    ids[i] = before;
  }
  return ids;
}

const pool = { ids: unpackIds(data.members.ids, data.members.count) };
for (const name of ['weight', 'ood_score', 'confidence', 'verdict', 'label', 'cluster', 'truth']) {
  pool[name] = unpack(data.members[name]);
}
const cellOf = new Map(data.cells.map((row, cell) => [row, cell]));
const styled = (word) => (['keep', 'doubt', 'drop'].includes(word) ? word : 'other'); // words that have a color
const two = (value) => (value / UNIT).toFixed(2);
// Rounded down, so that what is shown as 0.50 passes a threshold of 0.50.
const twoDown = (value) => (Math.floor(value / (UNIT / 100)) / 100).toFixed(2);
const grouped = (value) => value.toLocaleString('en-US');
