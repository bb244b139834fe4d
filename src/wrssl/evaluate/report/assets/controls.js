// The controls, and what they change in the page.
const PAGE = 60;
const at = (id) => document.getElementById(id);
let shown = PAGE;

function wanted() {
  return {
    hundredths: Math.round(Number(at('threshold').value) * 100),
    search: at('search').value.trim(),
    side: at('side').value,
    verdict: at('verdict').value,
    label: at('label').value,
    sort: at('sort').value,
    pictured: at('pictured') ? at('pictured').checked : false,
    view: at('view') ? at('view').value : 'table',
  };
}

function paint() {
  const now = wanted();
  const isIn = (row) => isKept(row, now.hundredths);
  const kept = data.keptAt[now.hundredths];
  const share = ((100 * kept) / data.size).toFixed(1);
  at('threshold-value').textContent = (now.hundredths / 100).toFixed(2);
  at('kept').textContent = `${grouped(kept)} of ${grouped(data.size)} pool members are kept (${share} %).`;
  at('threshold').setAttribute('aria-valuetext', `${(now.hundredths / 100).toFixed(2)}: ${at('kept').textContent}`);
  const rows = matching(now);
  const part = rows.slice(0, shown);
  const here = data.members.complete ? 'members' : 'members in this page';
  at('matching').textContent = rows.length ? `${grouped(part.length)} of ${grouped(rows.length)} matching ${here}` : `No ${here} match; change the search or a filter.`;
  if (now.view === 'pictures') {
    const list = element('ul', `gallery${near ? ' nearby' : ''}${data.texts ? ' texts' : ''}`);
    list.append(...part.map((row) => tile(row, isIn(row))));
    at('members').replaceChildren(list);
  } else {
    at('members').replaceChildren(...(part.length ? [tableOf(part, isIn)] : []));
  }
  at('more').hidden = part.length === rows.length;
}

function exported(kind) {
  const { hundredths } = wanted();
  const threshold = (hundredths / 100).toFixed(2);
  if (kind === 'csv') save(csv(hundredths), `kept-${threshold}.csv`, 'text/csv');
  else save(idLines(hundredths, kind === 'kept'), `${kind}-${threshold}.txt`, 'text/plain');
}

for (const id of ['threshold', 'search', 'side', 'verdict', 'label', 'sort', 'view', 'pictured']) {
  if (at(id)) at(id).addEventListener('input', () => { shown = PAGE; paint(); });
}
at('controls').addEventListener('submit', (event) => event.preventDefault());
at('more').addEventListener('click', () => { shown += PAGE; paint(); });
at('export-kept').addEventListener('click', () => exported('kept'));
at('export-csv').addEventListener('click', () => exported('csv'));
at('export-rest').addEventListener('click', () => exported('rest'));
if (data.members.complete && pool.ids.some((id) => /[\r\n]/.test(id))) {
  // A line break within an id would make two lines of one member.
  for (const id of ['export-kept', 'export-rest']) at(id).disabled = true;
  at('export-note').textContent = 'Some ids contain line breaks, so there is only the list as CSV.';
}
document.documentElement.classList.add('script');
paint();
