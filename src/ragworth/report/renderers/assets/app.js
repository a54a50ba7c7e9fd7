/* The page as a whole: addresses and the start. */

const hashFor = (where) => `#${new URLSearchParams(where).toString()}`;

function follow() {
  const where = new URLSearchParams(location.hash.slice(1));
  if (where.has('query')) {
    const query = index.queries.indexOf(where.get('query'));
    if (query >= 0) return showQuery(query);
    complain(`There is no query ${where.get('query')}${index.total > index.queries.length ? ' in this page, which holds only some of the queries' : ''}.`);
  }
  const left = byId('query').hidden ? null : Number(byId('query').dataset.number);
  byId('query').hidden = true;
  byId('list').hidden = false;
  if (where.has('finding') && !Object.hasOwn(index.findings, where.get('finding'))) {
    complain(`There is no finding ${where.get('finding')}.`);
  } else if (where.has('finding')) {
    const system = index.systems.indexOf(where.get('system'));
    if (system < 0 && where.get('system')) complain(`There is no system ${where.get('system')}.`);
    state.finding = where.get('finding');
    state.system = system < 0 ? '' : String(system);
    state.search = '';
    state.page = 0;
    showList();
    byId('explorer').scrollIntoView();
    byId('count').setAttribute('tabindex', '-1');
    byId('count').focus({ preventScroll: true });
  } else if (left !== null && /^#?(explorer)?$/.test(location.hash)) {
    focusQuery(left); // back where one was
  }
  return null;
}

async function startExplorer() {
  index = await unpack('index');
  fillControls();
  watchControls();
  byId('list').hidden = false;
  showList();
  addEventListener('hashchange', () => { byId('trouble').hidden = true; follow(); });
  await follow();
}

async function start() {
  watchTheme();
  watchSentences();
  if (!canUnpack()) return;
  watchCharts();
  if (byId('explorer')) await startExplorer();
  document.documentElement.dataset.ready = 'yes';
}

start();
