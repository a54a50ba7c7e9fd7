/* One query: what each system shows for it, what was judged and said of that, and what the model answered. */

const WORTH = { helpful: '▲', harmless: '●', distracting: '▽', misleading: '▼' };
const SIDE = 3;
/** Whether the model was shown a passage: metrics may look deeper. */
const isShown = (each) => index.k === null || each.rank <= index.k;
const loaded = new Map();
let beside = null;

/** The piece of the data that holds a query. */
function pieceOf(query) {
  const number = index.pieces.findLastIndex((low) => low <= query);
  if (!loaded.has(number)) loaded.set(number, unpack(`piece-${number}`).then(readPiece));
  return loaded.get(number);
}

function readPiece(piece) {
  const texts = new Map();
  for (let row = 0; row < piece.passages.n; row += 1) {
    const { passage, text } = rowAt(piece.passages, row);
    texts.set(passage, text);
  }
  return { ...piece, texts };
}

/** All that is known of one query. */
function gather(piece, query) {
  const known = { number: query, id: index.queries[query], text: index.texts[query], texts: piece.texts, turn: index.turns[query] || null };
  for (const name of ['contexts', 'worth', 'accepted', 'findings', 'subquestions', 'judgments', 'ratings', 'answers', 'outcomes', 'searches']) {
    known[name] = rowsOf(piece[name], query);
  }
  known.worthOf = new Map(known.worth.map((each) => [each.passage, each]));
  return known;
}

async function showQuery(query) {
  const known = gather(await pieceOf(query), query);
  if (!beside) beside = new Set(index.systems.map((_, i) => i).slice(0, SIDE));
  if (/^(apart|ahead)/.test(state.order)) beside = new Set([state.first, state.second]);
  const title = el('h3', { id: 'query-title', tabindex: '-1' }, printable(known.text || known.id));
  const accepted = known.accepted.map((each) => each.text);
  byId('query').replaceChildren(
    steps(query),
    title,
    el('p', { class: 'note' }, 'query ', el('code', null, printable(known.id)),
      accepted.length ? [' · accepted: ', accepted.map((text, i) => [i ? ' or ' : '', el('q', null, printable(text))])] : null),
    conversation(known.turn) || '',
    marks(known),
    index.cut ? el('p', { class: 'note' }, `In this page passages are cut to ${index.cut} characters; the model saw them whole.`) : '',
    el('div', { id: 'sides' }),
  );
  showSides(known);
  byId('list').hidden = true;
  byId('query').dataset.number = query;
  byId('query').hidden = false;
  byId('explorer').scrollIntoView();
  title.focus({ preventScroll: true });
}

/** What was said before a turn. */
function conversation(turn) {
  if (!turn) return null;
  const said = turn.history.map(([role, text]) => el('p', null, el('b', null, role === 'user' ? 'User: ' : 'Assistant: '), printable(text)));
  return el('details', { id: 'conversation' },
    el('summary', null, `Turn ${turn.number} of conversation `, el('code', null, printable(turn.conversation)), said.length ? `, after ${plural(said.length, 'message', 'messages')}` : ', the first'),
    said, turn.rewrite ? el('p', null, el('b', null, 'Human rewrite: '), printable(turn.rewrite)) : null);
}

function steps(query) {
  const place = listed.indexOf(query);
  const go = (to, words) => (place >= 0 && listed[to] !== undefined
    ? el('a', { href: hashFor({ query: index.queries[listed[to]] }), class: 'button' }, words) : null);
  return el('p', { class: 'steps' }, el('a', { href: '#explorer', class: 'button' }, '← All queries'), go(place - 1, 'Previous'), go(place + 1, 'Next'));
}

/** The metrics, grade and findings of every system for this query. */
function marks(known) {
  const told = (metric, system) => valueOf(metric, system, known.number) !== null || index.missing[metric][system][known.number];
  const metrics = index.metrics.filter((metric) => index.systems.some((_, system) => told(metric, system)));
  const head = el('tr', null, el('th', { scope: 'col' }, 'System'), el('th', { scope: 'col' }, 'Findings'), metrics.map((name) => el('th', { scope: 'col', class: 'n' }, printable(name))));
  const rows = index.systems.map((name, system) => {
    const every = known.findings.filter((each) => each.system === name);
    const mine = every.filter((each) => each.finding !== 'fine');
    const values = metrics.map((metric) => {
      const value = valueOf(metric, system, known.number);
      return value === null ? el('td', { class: 'n missing' }, printable(index.missing[metric][system][known.number] || '–')) : el('td', { class: 'n' }, fixed(value));
    });
    const words = mine.map((each) => el('li', null, el('b', null, index.findings[each.finding]), each.detail ? `: ${printable(each.detail)}` : ''));
    const choose = el('input', { type: 'checkbox', checked: beside.has(system), onchange: (event) => {
      if (event.target.checked) beside.add(system); else beside.delete(system);
      showSides(known);
    } });
    return el('tr', null, el('th', { scope: 'row' }, el('label', null, choose, ' ', gradeSign(system, known.number), printable(name))), el('td', null, words.length ? el('ul', { class: 'words' }, words) : every.length ? 'fine' : '–'), values);
  });
  return el('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Systems on this query' },
    el('table', { class: 'marks' }, el('caption', null, 'Systems on this query; those that are ticked stand side by side below'), el('thead', null, head), el('tbody', null, rows)));
}

function gradeSign(system, query) {
  const grade = index.grades[system][query];
  return grade ? el('span', { class: `grade ${grade}` }, `${GRADES[grade][0]} `, el('span', { class: 'hidden' }, `${GRADES[grade][1]}: `)) : null;
}

function showSides(known) {
  const chosen = [...beside].sort((a, b) => a - b);
  const columns = chosen.map((system) => side(known, system));
  const others = [...new Set(known.answers.map((each) => each.system))].filter((name) => !index.systems.includes(name));
  byId('sides').replaceChildren(
    el('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Passages side by side' }, el('div', { class: 'sides' }, columns)),
    matrix(known, chosen) || '',
    others.length ? el('section', { class: 'others' }, el('h4', null, 'Other answers'), others.map((name) => el('div', null, el('h5', null, printable(name)), answersOf(known, name)))) : '',
  );
}

function side(known, system) {
  const name = index.systems[system];
  const shown = known.contexts.filter((each) => each.system === name).sort((a, b) => a.rank - b.rank);
  return el('section', { class: 'side' }, el('h4', null, printable(name)), searchesOf(known, name), answersOf(known, name),
    shown.length ? el('ol', null, shown.map((each) => card(known, each)))
      : el('p', { class: 'note' }, index.unasked[system].includes(known.number) ? 'Its log lacks this query.' : 'Nothing was retrieved.'));
}

/** What a system searched for instead of the query. */
function searchesOf(known, name) {
  const texts = [...new Set(known.searches.filter((each) => each.system === name).map((each) => each.search))];
  if (!texts.length) return null;
  if (texts.length === 1 && texts[0] === known.text) return el('p', { class: 'note' }, 'Searched for the query as it is.');
  return el('p', { class: 'note searched' }, 'Searched for ', texts.map((text, i) => [i ? ', ' : '', el('q', null, printable(text))]));
}

/** A passage, with its worth in sign, number, word and colour. */
function card(known, shown) {
  const worth = known.worthOf.get(shown.passage) || {};
  const text = known.texts.get(shown.passage);
  const kind = worth.kind || '';
  const badge = worth.utility !== undefined
    ? el('span', { class: `badge ${kind}` }, `${WORTH[kind]} ${signed(worth.utility)} ${kind}`)
    : el('span', { class: 'badge' }, worth.relevant === undefined ? 'not judged' : worth.relevant ? 'relevant' : 'not relevant');
  const rated = known.ratings.filter((each) => each.passage === shown.passage);
  const answers = rated.filter((each) => each.value >= index.eta).length;
  const below = isShown(shown) ? null : el('span', { class: 'badge' }, 'not shown to the model');
  const covers = rated.length ? el('span', { class: 'badge' }, `answers ${answers} of ${plural(rated.length, 'sub-question', 'sub-questions')}`) : null;
  const judged = known.judgments.filter((each) => each.passage === shown.passage)
    .map((each) => asked(each, `${each.aspect} ${each.value === undefined ? each.status : fixed(each.value, 2)}`, { passage: shown.passage }));
  return el('li', { class: `passage ${kind}`, value: shown.rank },
    el('p', { class: 'head' }, el('b', { class: 'rank' }, String(shown.rank)), badge, below, covers),
    passageText(text),
    el('p', { class: 'asked' }, el('code', null, printable(shown.passage)), shown.score === undefined ? '' : el('span', null, `score ${fixed(shown.score, 2)}`), judged));
}

function passageText(text) {
  if (text === undefined) return el('p', { class: 'missing' }, 'no text');
  const words = printable(text);
  const made = el('p', { class: 'text' }, words.slice(0, 20000));
  if (words.length <= 320) return made;
  made.classList.add('short');
  const more = el('button', { type: 'button', class: 'plain', 'aria-expanded': 'false', onclick: () => {
    const open = !made.classList.toggle('short');
    more.textContent = open ? 'less' : 'all of it';
    more.setAttribute('aria-expanded', String(open));
  } }, 'all of it');
  const rest = words.length > 20000 ? el('small', null, ` the first 20,000 of ${words.length.toLocaleString('en')} characters`) : null;
  return el('div', null, made, more, rest);
}

function answersOf(known, name) {
  const mine = known.answers.filter((each) => each.system === name);
  const outcomes = known.outcomes.filter((each) => each.system === name);
  if (!mine.length && !outcomes.length) return null;
  const grade = outcomes.find((each) => each.aspect === 'grade');
  const label = grade && gradeWord(grade);
  const values = grade && grade.each ? JSON.parse(grade.each) : [];
  // Of several answers each has its own grade; without it, none is said to have that of all.
  const labelOf = (place) => (mine.length === 1 ? label : index.graded && values.length === mine.length ? wordOf(values[place]) : null);
  return el('div', { class: `answer ${label || ''}` },
    mine.map((each, place) => el('p', null, el('b', null, labelOf(place) ? `${GRADES[labelOf(place)][0]} ${GRADES[labelOf(place)][1]}` : 'Answer'), ' ',
      each.text === undefined ? el('span', { class: 'missing' }, printable(each.status)) : el('q', null, printable(each.text)), ' ',
      asked(each, mine.length > 1 ? `prompt, repeat ${each.repeat}` : 'prompt', { system: name }))),
    outcomes.length ? el('p', { class: 'asked' }, outcomes.map((each) => asked(each, `${each.aspect} ${each.value === undefined ? each.status : fixed(each.value, 2)}`, { system: name }))) : null);
}

function gradeWord(outcome) {
  if (!index.graded) return null;
  return outcome.label && Object.hasOwn(GRADES, outcome.label) ? outcome.label : wordOf(outcome.value);
}

/** The word whose value is nearest. */
function wordOf(value) {
  if (value === undefined || value === null) return null;
  return value >= 0.75 ? 'correct' : value >= 0.25 ? 'partially-correct' : value >= -0.5 ? 'abstained' : 'wrong';
}

/** Sub-questions by passages: how well each passage that is shown answers each of them. */
function matrix(known, chosen) {
  if (!known.ratings.length) return null;
  const names = chosen.map((system) => index.systems[system]);
  const places = new Map();
  for (const each of known.contexts) {
    if (!names.includes(each.system) || !isShown(each)) continue;
    if (!places.has(each.passage)) places.set(each.passage, []);
    places.get(each.passage).push(`${each.system} ${each.rank}`);
  }
  const passages = [...places.keys()];
  const rated = new Map(known.ratings.map((each) => [`${each.passage}\u0000${each.subquestion}`, each]));
  const head = el('tr', null, el('th', { scope: 'col' }, 'Sub-question'), passages.map((passage) => el('th', { scope: 'col', title: printable(places.get(passage).join(', ')) }, printable(passage))));
  const rows = known.subquestions.map((each) => {
    const values = passages.map((passage) => rated.get(`${passage}\u0000${each.subquestion}`));
    const covered = values.some((one) => one && one.value >= index.eta);
    const [note, kind] = covered ? ['✓ answered', 'yes'] : each.answerable === false ? ['– no passage answers it', 'never'] : ['✗ open', 'no'];
    return el('tr', null, el('th', { scope: 'row' }, printable(each.text || each.subquestion), el('small', { class: kind }, note)),
      values.map((one) => {
        if (!one) return el('td', { class: 'missing' }, '·');
        const sign = one.value === undefined ? printable(one.status) : `${one.value >= index.eta ? '✓' : ''}${minus(String(one.value))}`;
        return el('td', { class: one.value === undefined ? 'missing' : `rating r${Math.max(0, Math.min(5, Math.round(one.value)))}` }, asked(one, sign, { passage: one.passage, subquestion: each.text || each.subquestion }));
      }));
  });
  return el('section', null, el('h4', null, 'Sub-questions and passages'),
    el('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Sub-questions and passages' },
      el('table', { class: 'matrix' }, el('caption', null, `Ratings 0 to 5 of the passages shown; ✓ from ${index.eta} on, which counts as an answer`), el('thead', null, head), el('tbody', null, rows))));
}

/** A button that opens what is behind a value: its source, the prompt and what the model said. */
function asked(each, words, about) {
  return el('button', { type: 'button', class: 'value', onclick: () => showDialog(each, about) }, printable(words));
}

/** The prompts that a source names: NAME@VERSION, apart from the model, which is written alike. */
function promptsIn(source) {
  const names = [...String(source || '').matchAll(/(?:^|[\s·←])([\w-]+)@([0-9a-f]{6,})/g)].map((found) => found[1]);
  return [...new Set(names)].filter((name) => Object.hasOwn(index.prompts, name));
}

function showDialog(each, about) {
  const hidden = new Set(['q', 'raw', 'text', 'shown', 'system', 'passage', 'subquestion']);
  const what = each.aspect || (about.subquestion !== undefined ? 'rating' : 'answer');
  const facts = Object.entries(each).filter(([name]) => !hidden.has(name));
  const messages = promptsIn(each.source).flatMap((name) => [el('h3', null, `Prompt ${name}`, el('small', null, ` version ${index.prompts[name].version}`)),
    ...index.prompts[name].messages.map(([role, text]) => el('div', { class: 'message' }, el('b', null, role), el('pre', null, printable(text))))]);
  const raw = each.raw === undefined ? each.text : each.raw;
  byId('dialog-title').textContent = printable(`${what} · ${about.passage || about.system || ''}`);
  byId('dialog-body').replaceChildren(
    about.subquestion !== undefined ? el('p', null, printable(about.subquestion)) : '',
    el('table', null, el('caption', { class: 'hidden' }, 'What is known of it'), el('tbody', null, facts.map(([name, value]) => el('tr', null, el('th', { scope: 'row' }, printable(name)), el('td', null, printable(typeof value === 'number' ? minus(String(value)) : value)))))),
    el('h3', null, 'What the model said'),
    raw === undefined ? el('p', { class: 'note' }, 'No text was kept: the value was read from probabilities, or no model was asked.') : el('pre', { id: 'raw' }, printable(raw)),
    ...(messages.length ? messages : [el('p', { class: 'note' }, 'No prompt is recorded for this value.')]),
  );
  byId('dialog').showModal();
}
