/* Data inside the page, and elements made of it. Texts only ever become text nodes or attributes. */

const byId = (id) => document.getElementById(id);

/** What Python packed: JSON, gzipped, in base64. */
async function unpack(id) {
  const bytes = Uint8Array.from(atob(byId(id).textContent), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return JSON.parse(await new Response(stream).text());
}

function complain(words) {
  byId('trouble').textContent = printable(words);
  byId('trouble').hidden = false;
}

/** Whether there is what unpack needs; if not, the page says so. */
function canUnpack() {
  if (typeof DecompressionStream !== 'undefined') return true;
  complain('This browser cannot unpack the data of this page (it lacks DecompressionStream). Browsers since 2023 can.');
  return false;
}

/** An element. Attributes that begin with "on" are listeners; null, undefined and false are left out. */
function el(name, attributes, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith('on')) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? '' : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== ''));
  return node;
}

/** The rows of a table of columns that are about a query, by its number. */
function rowsOf(table, query) {
  const found = [];
  if (!table || !table.columns.q) return found;
  const numbers = table.columns.q.v;
  for (let row = 0; row < table.n; row += 1) if (numbers[row] === query) found.push(rowAt(table, row));
  return found;
}

function rowAt(table, row) {
  const made = Object.create(null);
  for (const [name, column] of Object.entries(table.columns)) {
    const value = column.d ? column.d[column.i[row]] : column.v[row];
    if (value !== null) made[name] = value;
  }
  return made;
}

const minus = (text) => text.replace('-', '−');
const fixed = (value, digits = 3) => minus(value.toFixed(digits));
const signed = (value, digits = 2) => (value > 0 ? '+' : '') + fixed(value, digits);
const plural = (number, one, many) => `${number.toLocaleString('en')} ${number === 1 ? one : many}`;

/** Control characters as a person can see them; line breaks and tabs stay. */
const printable = (text) =>
  String(text).replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g,
    (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`);
