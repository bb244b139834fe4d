// Members as tiles or as rows of a table. Text goes in as text, never as HTML.
function element(kind, className, content) {
  const made = document.createElement(kind);
  if (className) made.className = className;
  if (content !== undefined) made.textContent = content;
  return made;
}

function picture(row, extra) {
  const cell = cellOf.get(row);
  if (cell === undefined) return element('span', 'blank', 'no picture');
  const place = `c${cell % data.columns} r${Math.floor(cell / data.columns)}`;
  const made = element('span', `picture ${place} ${extra}`.trim());
  made.setAttribute('role', 'img');
  made.setAttribute('aria-label', `member ${pool.ids[row]}`);
  return made;
}

function tile(row, kept) {
  const word = WORDS[pool.verdict[row]];
  const made = element('li', kept ? 'tile' : 'tile out');
  const name = element('span', 'id', pool.ids[row]);
  name.title = `${pool.ids[row]}: predicted ${data.classes[pool.label[row]]}, ood_score ${two(pool.ood_score[row])}`;
  made.append(picture(row, ''), element('span', 'weight', twoDown(pool.weight[row])), element('span', `word ${word}`, word), name);
  return made;
}

function tableOf(rows, isIn) {
  const heads = [['Id', 'left'], ['Weight', ''], ['Kept', 'left'], ['ood_score', ''], ['Verdict', 'left'], ['Predicted', 'left'], ['Confidence', ''], ['Cluster', '']];
  if (data.truth) heads.push(['Truth', 'left']);
  if (data.columns) heads.unshift(['Picture', 'left']);
  const head = element('tr');
  for (const [title, className] of heads) {
    const made = element('th', className, title);
    made.scope = 'col';
    head.append(made);
  }
  const body = element('tbody');
  for (const row of rows) body.append(tableRow(row, isIn(row)));
  const table = element('table', 'numbers');
  const top = element('thead');
  top.append(head);
  table.append(top, body);
  const region = element('div', 'scroll');
  region.tabIndex = 0;
  region.setAttribute('role', 'region');
  region.setAttribute('aria-label', 'Members of the pool');
  region.append(table);
  return region;
}

function tableRow(row, kept) {
  const made = element('tr');
  if (data.columns) {
    const seen = element('td', 'left');
    if (cellOf.has(row)) seen.append(picture(row, 'small'));
    made.append(seen);
  }
  const word = WORDS[pool.verdict[row]];
  const name = element('th', 'id', pool.ids[row]);
  name.scope = 'row';
  made.append(name, element('td', '', twoDown(pool.weight[row])), element('td', 'left', kept ? 'yes' : 'no'),
    element('td', '', two(pool.ood_score[row])), element('td', `left ${word}`, word),
    element('td', 'left', data.classes[pool.label[row]]), element('td', '', two(pool.confidence[row])),
    element('td', '', pool.cluster[row] ? String(pool.cluster[row] - 1) : '–'));
  if (data.truth) made.append(element('td', 'left', ['belongs', 'does not belong', '–'][pool.truth[row]]));
  return made;
}
