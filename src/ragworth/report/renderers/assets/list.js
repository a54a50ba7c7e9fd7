/* The list of queries: searched, filtered, ordered, a page at a time. */

const PAGE = 25;
const GRADES = {
  correct: ['✓', 'correct'], 'partially-correct': ['◐', 'partially correct'], abstained: ['–', 'abstained'], wrong: ['✗', 'wrong'],
};
let index = null;
const state = { search: '', metric: '', order: 'given', first: 0, second: 1, finding: '', system: '', page: 0 };
let listed = [];

const valueOf = (metric, system, query) => index.scores[metric][system][query];

function meanOf(metric, query) {
  const known = index.systems.map((_, system) => valueOf(metric, system, query)).filter((value) => value !== null);
  return known.length ? known.reduce((sum, value) => sum + value, 0) / known.length : null;
}

const spans = new Map();

/** The least and the greatest value of a metric: 0 and what it reaches, or all that there is below and above. */
function spanOf(metric) {
  if (!spans.has(metric)) {
    let [low, high] = [Infinity, -Infinity];
    for (const values of index.scores[metric]) for (const value of values) if (value !== null) [low, high] = [Math.min(low, value), Math.max(high, value)];
    spans.set(metric, { low, high });
  }
  return spans.get(metric);
}

function difference(query) {
  const [a, b] = [state.first, state.second].map((system) => valueOf(state.metric, system, query));
  return a === null || b === null ? null : a - b;
}

/** What queries are ordered by: a number for each, and whether the greatest comes first. */
function orderBy() {
  const [kind, which, way] = state.order.split(':');
  if (kind === 'low' || kind === 'high') return { key: (query) => meanOf(state.metric, query), down: kind === 'high' };
  if (kind === 'apart') return { key: (query) => { const d = difference(query); return d === null ? null : Math.abs(d); }, down: true };
  if (kind === 'ahead') return { key: difference, down: true };
  if (kind === 'system') return { key: (query) => valueOf(state.metric, Number(which), query), down: way === 'down' };
  return { key: (query) => query, down: false };
}

const hasFinding = (query, bit, systems) => systems.some((system) => index.found[system][query] & (1 << bit));

// Without case and accents: who types numero finds número.
const plain = (text) => text.toLowerCase().normalize('NFD').replace(/\p{Mn}/gu, '');

function select() {
  const words = plain(state.search).split(/\s+/).filter(Boolean);
  const bit = state.finding ? Object.keys(index.findings).indexOf(state.finding) : -1;
  const systems = state.system === '' ? index.systems.map((_, i) => i) : [Number(state.system)];
  const { key, down } = orderBy();
  const kept = [];
  for (let query = 0; query < index.queries.length; query += 1) {
    const text = plain(`${index.queries[query]} ${index.texts[query] || ''}`);
    if (words.every((word) => text.includes(word)) && (bit < 0 || hasFinding(query, bit, systems))) kept.push([query, key(query)]);
  }
  // What has no value comes last, whichever way the order goes.
  kept.sort(([a, x], [b, y]) => (x === null) - (y === null) || (down ? y - x : x - y) || a - b);
  listed = kept.map(([query]) => query);
}

function cell(metric, system, query) {
  const value = valueOf(metric, system, query);
  const grade = index.grades[system][query];
  const sign = grade && el('span', { class: `grade ${grade}`, title: GRADES[grade][1] }, GRADES[grade][0], el('span', { class: 'hidden' }, ` ${GRADES[grade][1]} `));
  if (value === null) {
    const why = index.missing[metric][system][query] || 'not scored';
    return el('td', { class: 'n missing' }, sign, ' ', printable(why));
  }
  const made = el('td', { class: 'n value' }, sign, ' ', fixed(value));
  const { low, high } = spanOf(metric);
  made.style.setProperty('--share', high > low ? (value - low) / (high - low) : 1);
  return made;
}

function chips(query) {
  return Object.entries(index.findings).map(([name, words], bit) => {
    const number = index.systems.filter((_, system) => index.found[system][query] & (1 << bit)).length;
    return number && name !== 'fine' ? el('span', { class: `chip ${name}`, title: `${words}: ${plural(number, 'system', 'systems')}` }, `${name.replaceAll('-', ' ')} ×${number}`) : null;
  });
}

function heading() {
  const [kind, which, way] = state.order.split(':');
  const systems = index.systems.map((name, i) => {
    const mine = kind === 'system' && Number(which) === i;
    const next = mine && way === 'up' ? 'down' : 'up';
    const sort = mine ? (way === 'up' ? 'ascending' : 'descending') : 'none';
    const go = () => { state.order = `system:${i}:${next}`; state.page = 0; showList(); focusHead(i); };
    return el('th', { scope: 'col', class: 'n', 'aria-sort': sort, 'data-system': i },
      el('button', { type: 'button', onclick: go, title: printable(name) }, printable(index.short[i]), el('span', { 'aria-hidden': 'true' }, mine ? (way === 'up' ? ' ▲' : ' ▼') : ' ↕')));
  });
  const apart = kind === 'apart' || kind === 'ahead' ? el('th', { scope: 'col', class: 'n' }, 'difference') : null;
  return el('tr', null, el('th', { scope: 'col' }, 'Query'), apart, systems, el('th', { scope: 'col' }, 'Findings'));
}

const focusHead = (i) => document.querySelector(`#queries th[data-system="${i}"] button`).focus();

/** The keyboard goes on at a query of the list, on the page that has it; where it is filtered out, at the count. */
function focusQuery(query) {
  const place = listed.indexOf(query);
  state.page = place < 0 ? state.page : Math.floor(place / PAGE);
  showList();
  if (place < 0) byId('count').setAttribute('tabindex', '-1');
  (place < 0 ? byId('count') : document.querySelectorAll('#queries tbody th a')[place % PAGE]).focus();
}

function row(query) {
  const apart = /^(apart|ahead)/.test(state.order);
  const gap = apart ? difference(query) : null;
  return el('tr', null,
    el('th', { scope: 'row' }, el('a', { href: hashFor({ query: index.queries[query] }) }, printable(index.texts[query] || index.queries[query])),
      index.texts[query] ? el('small', null, printable(index.turns[query] ? `${index.turns[query].conversation}, turn ${index.turns[query].number} · ${index.queries[query]}` : index.queries[query])) : null),
    apart ? el('td', { class: 'n' }, gap === null ? '–' : signed(gap, 3)) : null,
    index.systems.map((_, system) => cell(state.metric, system, query)),
    el('td', { class: 'chips' }, chips(query)));
}

function showList() {
  select();
  const pages = Math.max(1, Math.ceil(listed.length / PAGE));
  state.page = Math.max(0, Math.min(state.page, pages - 1));
  const shown = listed.slice(state.page * PAGE, (state.page + 1) * PAGE);
  const table = byId('queries');
  table.tHead.replaceChildren(heading());
  table.tBodies[0].replaceChildren(...shown.map(row));
  byId('count').textContent = `${plural(listed.length, 'query', 'queries')} of ${index.queries.length.toLocaleString('en')}${index.total > index.queries.length ? ' in this page' : ''}`;
  byId('page').textContent = `page ${state.page + 1} of ${pages}`;
  byId('back').disabled = state.page === 0;
  byId('forth').disabled = state.page === pages - 1;
  byId('list').querySelector('.pager').hidden = pages === 1;
  for (const name of ['search', 'metric', 'finding', 'system', 'first', 'second']) byId(name).value = String(state[name]);
  byId('order').value = state.order.startsWith('system:') ? 'column' : state.order;
  byId('list').querySelector('.pair').hidden = !/^(apart|ahead)/.test(state.order);
  byId('system').parentElement.hidden = state.finding === '' || index.systems.length < 2;
}

function option(value, words) {
  return el('option', { value }, printable(words));
}

function fillControls() {
  const systems = index.systems.map((name, i) => option(i, name));
  byId('metric').replaceChildren(...index.metrics.map((name) => option(name, name)));
  const two = index.systems.length > 1;
  byId('order').replaceChildren(option('given', 'the order given'), option('low', 'metric, lowest first'), option('high', 'metric, highest first'),
    ...(two ? [option('apart', 'disagreement of two systems'), option('ahead', 'lead of one system over another')] : []),
    el('option', { value: 'column', disabled: true }, 'one system (column heading)'));
  byId('first').replaceChildren(...systems);
  byId('second').replaceChildren(...systems.map((each) => each.cloneNode(true)));
  byId('system').replaceChildren(option('', 'any system'), ...systems.map((each) => each.cloneNode(true)));
  byId('finding').replaceChildren(option('', 'any'), ...Object.entries(index.findings).map(([name, words]) => option(name, words)));
  state.metric = index.main;
  state.second = Math.min(1, index.systems.length - 1);
}

function watchControls() {
  byId('list').querySelector('form').addEventListener('submit', (event) => event.preventDefault());
  for (const name of ['search', 'metric', 'order', 'first', 'second', 'finding', 'system']) {
    byId(name).addEventListener(name === 'search' ? 'input' : 'change', (event) => {
      const number = name === 'first' || name === 'second';
      state[name] = number ? Number(event.target.value) : event.target.value;
      state.page = 0;
      showList();
    });
  }
  byId('back').addEventListener('click', () => { state.page -= 1; showList(); });
  byId('forth').addEventListener('click', () => { state.page += 1; showList(); });
}
