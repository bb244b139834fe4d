// What the pointer is at on the map: the nearest point, and beside the map what it is.
const REACH = 24; // pixels of the screen within which a point is found

function pointAt(picture, event) {
  const place = picture.getBoundingClientRect();
  const scale = picture.viewBox.baseVal.width / place.width;
  const x = (event.clientX - place.left) * scale;
  const y = (event.clientY - place.top) * scale;
  let best;
  let distance = (REACH * scale) ** 2;
  data.map.x.forEach((left, point) => {
    const here = (left - x) ** 2 + (data.map.y[point] - y) ** 2;
    if (here < distance || (here === distance && point >= data.map.rows.length)) {
      best = point;
      distance = here;
    }
  });
  return best;
}

function drawn(kind, className, attributes) {
  const made = document.createElementNS(at('map-picture').namespaceURI, kind);
  made.setAttribute('class', className);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

// A ring; from a member lines to its nearest labels; around a label the others of its class.
function marks(point) {
  const [x, y] = [data.map.x, data.map.y];
  const members = data.map.rows.length;
  const ring = drawn('circle', 'ring', { cx: x[point], cy: y[point], r: 8 });
  if (point >= members) {
    const others = [...x.keys()].filter((other) => other >= members && other !== point && labels[other - members] === labels[point - members]);
    return [...others.map((other) => drawn('circle', 'ring same', { cx: x[other], cy: y[other], r: 7 })), ring];
  }
  const ends = nearestOf(data.map.rows[point]).map(({ place }) => members + place).filter((end) => end < x.length);
  return [...ends.map((end) => drawn('line', 'thread', { x1: x[point], y1: y[point], x2: x[end], y2: y[end] })), ring];
}

function aboutMember(row) {
  const word = data.words[pool.verdict[row]];
  const said = element('p', '');
  said.append(element('b', `word ${styled(word)}`, word), ` · ood_score ${two(pool.ood_score[row])} · weight ${twoDown(pool.weight[row])}`);
  const predicted = element('p', '', `predicted ${data.classes[pool.label[row]]} (${two(pool.confidence[row])})`);
  const parts = [element('p', 'id', pool.ids[row]), said, predicted];
  if (data.columns || data.texts) parts.unshift(lookOf(row, 'large'));
  if (nearestOf(row).length) parts.push(element('p', 'hint', 'Nearest labeled examples, with their cosine:'), nearestList(row));
  return parts;
}

function aboutLabeled(place) {
  const look = lookOfLabeled(place, 'large');
  const said = element('p', '');
  said.append('labeled ', element('b', '', labeledName(place)));
  return look ? [look, said] : [said];
}

if (data.map) {
  const picture = at('map-picture');
  const top = drawn('g', 'marks', {});
  picture.append(top);
  let current;
  const show = (event) => {
    const point = pointAt(picture, event);
    if (point === undefined || point === current) return;
    current = point;
    const members = data.map.rows.length;
    at('pointed').replaceChildren(...(point < members ? aboutMember(data.map.rows[point]) : aboutLabeled(point - members)));
    top.replaceChildren(...marks(point));
  };
  picture.addEventListener('pointermove', show);
  picture.addEventListener('pointerdown', show);
}
