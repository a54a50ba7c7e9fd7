/* Charts are drawn when they come into view, in the colours of the theme, and again when the theme changes. */

const MARK = '\u0001';
let drawings = null;
const drawn = new Map();

function painted(spec, colors) {
  if (Array.isArray(spec)) return spec.map((each) => painted(each, colors));
  if (spec && typeof spec === 'object') {
    const made = {};
    for (const [key, value] of Object.entries(spec)) made[key] = key === 'values' ? value : painted(value, colors);
    return made;
  }
  const named = typeof spec === 'string' && spec[0] === MARK ? spec.slice(1) : null;
  return named !== null && Object.hasOwn(colors, named) ? colors[named] : spec;
}

/** As many columns as there is room for, in pixels, when the longest name has so many letters. */
function fitLegend(legend, room, longest, most) {
  legend.columns = Math.max(1, Math.min(most, Math.floor(room / (7 * longest + 34))));
  legend.labelLimit = Math.min(240, room / legend.columns - 30);
}

async function draw(place) {
  drawings = drawings || unpack('charts');
  const { specs, themes } = await drawings;
  const theme = themes[dark() ? 'dark' : 'light'];
  const config = structuredClone(theme.config);
  const narrow = place.clientWidth < 420;
  if (narrow) {
    config.axis.labelLimit = place.clientWidth * 0.48;
    config.axis.labelFontSize = 11;
  }
  const options = {
    ast: true, actions: false, renderer: 'svg', defaultStyle: false, config, logLevel: 0,
    tooltip: (handler, event, item, value) => tip(event, value),
  };
  const before = drawn.get(place);
  const spec = painted(specs[place.dataset.chart], theme.colors);
  fitLegend(config.legend, place.clientWidth - 50, spec.usermeta?.longest ?? 0, narrow ? 2 : 4);
  const wide = Boolean(spec.usermeta?.wide);
  place.classList.toggle('wide', wide);
  if (narrow && !wide) spec.width = 'container';
  drawn.set(place, window.drawChart(place, spec, options));
  if (before) (await before).finalize();
  await drawn.get(place);
}

/** Numbers under the pointer, as text. */
function tip(event, value) {
  const box = byId('tip');
  if (value === null || value === undefined || value === '') {
    box.hidden = true;
    return;
  }
  const pairs = typeof value === 'object' ? Object.entries(value) : [['', value]];
  box.replaceChildren(el('dl', null, pairs.map(([name, words]) => [el('dt', null, name), el('dd', null, printable(words))])));
  box.hidden = false;
  const room = { x: innerWidth - box.offsetWidth - 8, y: innerHeight - box.offsetHeight - 8 };
  box.style.left = `${Math.max(4, Math.min(event.clientX + 12, room.x))}px`;
  box.style.top = `${Math.max(4, Math.min(event.clientY + 12, room.y))}px`;
}

/** From mark to mark with the arrow keys: what a pointer is told, a keyboard is told too. */
function walk(event) {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (event.key === 'Escape') tip(event, null);
  if (!step) return;
  event.preventDefault();
  const place = event.currentTarget;
  const marks = [...place.querySelectorAll('.mark-symbol path, .mark-rect path')].filter((mark) => mark.__data__?.tooltip);
  if (!marks.length) return;
  const at = place.dataset.at === undefined ? (step > 0 ? -1 : 0) : Number(place.dataset.at);
  const next = (at + step + marks.length) % marks.length;
  place.dataset.at = String(next);
  marks[next].scrollIntoView({ block: 'nearest', inline: 'nearest' });
  const box = marks[next].getBoundingClientRect();
  tip({ clientX: box.right, clientY: box.bottom }, marks[next].__data__.tooltip);
}

function watchCharts() {
  const places = [...document.querySelectorAll('[data-chart]')];
  for (const place of places) {
    place.addEventListener('keydown', walk);
    place.addEventListener('blur', (event) => tip(event, null));
  }
  const watcher = new IntersectionObserver((seen) => {
    for (const { isIntersecting, target } of seen) {
      if (!isIntersecting || drawn.has(target)) continue;
      watcher.unobserve(target);
      draw(target);
    }
  }, { rootMargin: '300px' });
  places.forEach((place) => watcher.observe(place));
  addEventListener('beforeprint', () => places.filter((place) => !drawn.has(place)).forEach(draw));
}

const redraw = () => [...drawn.keys()].forEach(draw);
