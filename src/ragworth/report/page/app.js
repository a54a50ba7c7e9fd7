/* The page as a whole: theme, addresses and the start. */

const hashFor = (where) => `#${new URLSearchParams(where).toString()}`;

function follow() {
  const where = new URLSearchParams(location.hash.slice(1));
  if (where.has('query')) {
    const query = index.queries.indexOf(where.get('query'));
    if (query >= 0) return showQuery(query);
    byId('trouble').textContent = printable(`There is no query ${where.get('query')}.`);
    byId('trouble').hidden = false;
  }
  byId('query').hidden = true;
  byId('list').hidden = false;
  if (where.has('finding')) {
    const system = index.systems.indexOf(where.get('system'));
    state.finding = where.get('finding');
    state.system = system < 0 ? '' : String(system);
    state.search = '';
    state.page = 0;
    showList();
    byId('explorer').scrollIntoView();
    byId('count').setAttribute('tabindex', '-1');
    byId('count').focus({ preventScroll: true });
  }
  return null;
}

function watchTheme() {
  const button = byId('theme');
  const show = () => { button.setAttribute('aria-pressed', String(dark())); button.textContent = dark() ? 'Light' : 'Dark'; };
  const remembered = (() => { try { return localStorage.getItem('ragworth-theme'); } catch { return null; } })();
  if (remembered === 'dark' || remembered === 'light') document.documentElement.dataset.theme = remembered;
  button.addEventListener('click', () => {
    document.documentElement.dataset.theme = dark() ? 'light' : 'dark';
    try { localStorage.setItem('ragworth-theme', document.documentElement.dataset.theme); } catch { /* not remembered, then */ }
    show();
    redraw();
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { show(); redraw(); });
  show();
}

async function start() {
  watchTheme();
  if (typeof DecompressionStream === 'undefined') {
    byId('trouble').textContent = 'This browser cannot unpack the data of the explorer and of the charts (it lacks DecompressionStream). Browsers since 2023 can.';
    byId('trouble').hidden = false;
    return;
  }
  watchCharts();
  index = await unpack('index');
  fillControls();
  watchControls();
  byId('list').hidden = false;
  showList();
  addEventListener('hashchange', () => { byId('trouble').hidden = true; follow(); });
  await follow();
  document.documentElement.dataset.ready = 'yes';
}

start();
