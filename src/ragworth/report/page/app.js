/* The page as a whole: theme, addresses and the start. */

const hashFor = (where) => `#${new URLSearchParams(where).toString()}`;

function complain(words) {
  byId('trouble').textContent = printable(words);
  byId('trouble').hidden = false;
}

function follow() {
  const where = new URLSearchParams(location.hash.slice(1));
  if (where.has('query')) {
    const query = index.queries.indexOf(where.get('query'));
    if (query >= 0) return showQuery(query);
    complain(`There is no query ${where.get('query')}.`);
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

function watchTheme() {
  const button = byId('theme');
  const show = () => { button.textContent = dark() ? 'Light' : 'Dark'; button.setAttribute('aria-label', `${button.textContent} theme`); };
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
    complain('This browser cannot unpack the data of the explorer and of the charts (it lacks DecompressionStream). Browsers since 2023 can.');
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
