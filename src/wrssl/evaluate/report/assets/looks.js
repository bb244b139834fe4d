// What members of the pool and labeled examples look like: a cell of the sheet, or a text. Text goes in as text.
function element(kind, className, content) {
  const made = document.createElement(kind);
  if (className) made.className = className;
  if (content !== undefined) made.textContent = content;
  return made;
}

function pictureAt(cell, extra, said) {
  const made = element('span', `picture c${cell % data.columns} r${Math.floor(cell / data.columns)} ${extra}`.trim());
  made.setAttribute('role', 'img');
  made.setAttribute('aria-label', said);
  return made;
}

function quote(text, extra) {
  const made = element('span', `quote ${extra}`.trim(), text);
  made.title = text;
  return made;
}

function lookOf(row, extra) {
  const cell = cellOf.get(row);
  if (cell === undefined) return element('span', 'blank', data.texts ? 'text not here' : 'no picture');
  return data.texts ? quote(data.texts.members[cell], extra) : pictureAt(cell, extra, `member ${pool.ids[row]}`);
}

// Labeled examples follow the members on the sheet; of many, the last ones have no picture and no text.
function lookOfLabeled(place, extra) {
  if (place >= data.labeled.pictured) return undefined;
  if (data.texts) return quote(data.texts.labeled[place], extra);
  return data.columns ? pictureAt(data.cells.length + place, extra, `labeled ${labeledName(place)}`) : undefined;
}

const labels = data.labeled ? unpack(data.labeled.label) : [];
const labeledName = (place) => data.classes[labels[place]];
const near = data.neighbors ? { place: unpack(data.neighbors.place), cosine: unpack(data.neighbors.cosine) } : undefined;

function nearestOf(row) {
  const cell = cellOf.get(row);
  if (!near || cell === undefined) return [];
  return Array.from({ length: data.neighbors.number }, (_, k) => {
    const at = cell * data.neighbors.number + k;
    const hundredths = Math.round((200 * near.cosine[at]) / UNIT - 100);
    return { place: near.place[at], cosine: ((hundredths || 0) / 100).toFixed(2) }; // || turns −0 into 0
  });
}

function nearestList(row) {
  const list = element('ul', 'near');
  list.setAttribute('aria-label', 'Nearest labeled examples');
  for (const { place, cosine } of nearestOf(row)) {
    const item = element('li');
    const name = element('span', 'name', labeledName(place));
    item.title = `${labeledName(place)}, cosine ${cosine}`;
    const look = lookOfLabeled(place, '');
    item.append(...(look ? [look] : []), name, element('span', 'cosine', cosine));
    list.append(item);
  }
  return list;
}
