// Sorts and filters the page's table, and keeps both in the address; without it all rows are shown.
'use strict';
document.documentElement.classList.add('scripted');

function live(table) {
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const heads = [...table.tHead.rows[0].cells];
  const find = document.querySelector('#find');
  const only = document.querySelector('#only');
  const told = document.querySelector('#told');
  let asked = new URLSearchParams();

  const value = (row, at) => row.cells[at].dataset.value ?? row.cells[at].textContent.trim();

  function keep(name, words) {
    if (words) asked.set(name, words);
    else asked.delete(name);
    history.replaceState(null, '', '#' + asked);
  }

  function show() {
    const words = (find?.value ?? '').toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      const verdicts = (row.dataset.verdict ?? '').split(' ');
      const fits = !only?.value || verdicts.includes(only.value);
      row.hidden = !fits || !words.every(word => text.includes(word));
    }
    const shown = rows.filter(row => !row.hidden).length;
    if (told) told.textContent = shown === rows.length ? '' : `${shown} of ${rows.length}`;
  }

  function sort(at, down) {
    const areNumbers = rows.every(row => !isNaN(value(row, at)));
    const ordered = [...rows].sort((one, other) => {
      const [a, b] = [value(one, at), value(other, at)];
      if (a === '' || b === '') return (a === '') - (b === '');
      const order = areNumbers ? a - b : a.localeCompare(b, undefined, {numeric: true});
      return down ? -order : order;
    });
    body.append(...ordered);
    heads.forEach(head => head.removeAttribute('aria-sort'));
    heads[at].setAttribute('aria-sort', down ? 'descending' : 'ascending');
  }

  heads.forEach((head, at) => {
    const button = document.createElement('button');
    button.type = 'button';
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener('click', () => {
      const down = head.getAttribute('aria-sort') === 'ascending';
      sort(at, down);
      keep('sort', (down ? '-' : '') + at);
    });
  });
  const fields = [['find', find, 'input'], ['only', only, 'change']].filter(([, field]) => field);
  for (const [name, field, event] of fields) {
    field.addEventListener(event, () => { keep(name, field.value); show(); });
  }

  function follow() {
    asked = new URLSearchParams(location.hash.slice(1));
    for (const [name, field] of fields) field.value = asked.get(name) ?? '';
    const by = asked.get('sort') ?? '';
    const at = Math.abs(parseInt(by, 10));
    if (at < heads.length) sort(at, by.startsWith('-'));
    show();
  }

  addEventListener('hashchange', follow);
  follow();
}

const table = document.querySelector('table.sortable');
if (table) live(table);
