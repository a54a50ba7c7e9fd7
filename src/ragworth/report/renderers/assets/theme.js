/* Light or dark: as the reader's system has it, until the reader chooses. */

function dark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
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
