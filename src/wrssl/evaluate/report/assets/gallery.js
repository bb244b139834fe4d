// Members as tiles or as rows of a table.
function tile(row, kept) {
  const word = data.words[pool.verdict[row]];
  const made = element('li', kept ? 'tile' : 'tile out');
  const name = element('span', 'id', pool.ids[row]);
  name.title = `${pool.ids[row]}: predicted ${data.classes[pool.label[row]]}, ood_score ${two(pool.ood_score[row])}`;
  made.append(lookOf(row, ''), element('span', 'weight', twoDown(pool.weight[row])), element('span', `word ${styled(word)}`, word));
  if (near) made.append(nearestList(row));
  made.append(name);
  return made;
}

function tableOf(rows, isIn) {
  const heads = [['Id', 'left'], ['Weight', ''], ['Kept', 'left'], ['ood_score', ''], ['Verdict', 'left'], ['Predicted', 'left'], ['Confidence', ''], ['Cluster', '']];
  if (data.truth) heads.push(['Truth', 'left']);
  if (near) heads.push(['Nearest labels', 'left']);
  if (data.columns) heads.unshift(['Picture', 'left']);
  if (data.texts) heads.splice(1, 0, ['Text', 'left']);
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
    if (cellOf.has(row)) seen.append(lookOf(row, 'small'));
    made.append(seen);
  }
  const word = data.words[pool.verdict[row]];
  const name = element('th', 'id', pool.ids[row]);
  name.scope = 'row';
  made.append(name);
  if (data.texts) {
    const seen = element('td', 'left');
    if (cellOf.has(row)) seen.append(lookOf(row, ''));
    made.append(seen);
  }
  made.append(element('td', '', twoDown(pool.weight[row])), element('td', 'left', kept ? 'yes' : 'no'),
    element('td', '', two(pool.ood_score[row])), element('td', `left ${styled(word)}`, word),
    element('td', 'left', data.classes[pool.label[row]]), element('td', '', two(pool.confidence[row])),
    element('td', '', pool.cluster[row] ? String(pool.cluster[row] - 1) : '–'));
  if (data.truth) made.append(element('td', 'left', ['belongs', 'does not belong', '–'][pool.truth[row]]));
  if (near) made.append(element('td', 'left', nearestOf(row).map(({ place, cosine }) => `${labeledName(place)} ${cosine}`).join(', ')));
  return made;
}
