/* Prompts with their slots filled, as ragworth.prompts fills them: {{name}}, {{name*}}, {{#list}}…{{/list}}, \{{. */

const SLOT = /\{\{\s*([#/]?)\s*(\.|[A-Za-z_][\w-]*)\s*([*?]?)\s*\}\}/g;

function pieces(text) {
  const escaped = text.replaceAll('\\{{', '\ue000');
  const open = [{ name: null, inside: [] }];
  let place = 0;
  for (const found of escaped.matchAll(SLOT)) {
    open.at(-1).inside.push(escaped.slice(place, found.index).replaceAll('\ue000', '{{'));
    place = found.index + found[0].length;
    const [, kind, name, sign] = found;
    if (kind === '#') open.push({ name, inside: [] });
    else if (kind === '/' && open.length > 1) {
      const part = open.pop();
      open.at(-1).inside.push(part);
    } else open.at(-1).inside.push({ slot: name, passage: sign === '*' });
  }
  open.at(-1).inside.push(escaped.slice(place).replaceAll('\ue000', '{{'));
  return open[0].inside;
}

function lookUp(name, scopes) {
  const scope = scopes.findLast((each) => Object.hasOwn(each, name));
  return scope ? scope[name] : undefined;
}

/** The pieces as texts, each with whether it is a passage's. */
function filledPieces(inside, scopes, code) {
  return inside.flatMap((piece) => {
    if (typeof piece === 'string') return [[piece, false]];
    if (piece.slot === 'fence') return [[code, false]];
    if (Object.hasOwn(piece, 'slot')) {
      const value = lookUp(piece.slot, scopes);
      return [[value === undefined || value === null ? `‹${piece.slot}›` : String(value), piece.passage]];
    }
    const value = lookUp(piece.name, scopes);
    if (value === undefined || value === null || value === '') return [];
    const items = Array.isArray(value) ? value : [value];
    return items.flatMap((item, i) => {
      const scope = item !== null && typeof item === 'object' ? { ...item } : { '.': item };
      scope.number = String(i + 1);
      return filledPieces(piece.inside, [...scopes, scope], code);
    });
  });
}

const joined = (texts) => texts.map(([text]) => text).join('');

function crc32(bytes) {
  let sum = -1;
  for (const byte of bytes) {
    sum ^= byte;
    for (let bit = 0; bit < 8; bit += 1) sum = (sum >>> 1) ^ (sum & 1 ? 0xedb88320 : 0);
  }
  return (~sum >>> 0).toString(16).padStart(8, '0');
}

/** The code of a prompt's fences: it depends on everything but the passages, and occurs in no text, however disguised. */
function fenceCode(parsed, values, front) {
  const texts = [[front, false], ...parsed.flatMap((inside) => filledPieces(inside, [values], ''))];
  const seed = joined(texts.filter(([, passage]) => !passage));
  const alike = { а: 'a', α: 'a', с: 'c', ϲ: 'c', ԁ: 'd', е: 'e', о: 'o', ο: 'o' };
  const shown = joined(texts).normalize('NFKC').toLowerCase().replace(/[^\p{L}\p{N}]+/gu, '').replace(/[^ -~]/g, (sign) => alike[sign] || sign);
  for (let number = 0; ; number += 1) {
    const code = crc32(new TextEncoder().encode(`${number} ${seed}`)).slice(0, number < 8 ? 6 : 8);
    if (!shown.includes(code)) return code;
  }
}

/** The messages of a prompt with these values; the last one of the user begins with the conversation, if there is one. */
function filled(prompt, values, conversation = '') {
  const parsed = prompt.messages.map(([, text]) => pieces(text));
  const front = prompt.messages.some(([, text]) => /\{\{[#\s]*history/.test(text)) ? '' : conversation;
  const code = fenceCode(parsed, values, front);
  const last = prompt.messages.findLastIndex(([role]) => role === 'user' || role === 'text');
  return prompt.messages.map(([role], i) => [role, ((i === last ? front : '') + joined(filledPieces(parsed[i], [values], code))).trim()]);
}

/** The prompts that a source names: NAME@VERSION, apart from the model, which is written alike. */
function promptsIn(source, known) {
  const names = [...String(source || '').matchAll(/(?:^|[\s·←])([\w-]+)@([0-9a-f]{6,})/g)].map((found) => found[1]);
  return [...new Set(names)].filter((name) => Object.hasOwn(known, name));
}
