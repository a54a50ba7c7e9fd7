/* Prompts with their slots filled, as ragworth.prompts fills them: {{name}}, {{name*}}, {{#list}}…{{/list}}, \{{. */

const SLOT = /\{\{\s*([#/]?)\s*(\.|[A-Za-z_][\w-]*)\s*([*?]?)\s*\}\}/g;

function pieces(text) {
  const escaped = text.replaceAll('\\{{', '\ue000');
  const open = [{ name: null, inside: [] }];
  let place = 0;
  for (const found of escaped.matchAll(SLOT)) {
    open.at(-1).inside.push(escaped.slice(place, found.index).replaceAll('\ue000', '{{'));
    place = found.index + found[0].length;
    const [, kind, name] = found;
    if (kind === '#') open.push({ name, inside: [] });
    else if (kind === '/' && open.length > 1) {
      const part = open.pop();
      open.at(-1).inside.push(part);
    } else open.at(-1).inside.push({ slot: name });
  }
  open.at(-1).inside.push(escaped.slice(place).replaceAll('\ue000', '{{'));
  return open[0].inside;
}

function lookUp(name, scopes) {
  const scope = scopes.findLast((each) => Object.hasOwn(each, name));
  return scope ? scope[name] : undefined;
}

function filledPieces(inside, scopes) {
  return inside.map((piece) => {
    if (typeof piece === 'string') return piece;
    if (Object.hasOwn(piece, 'slot')) {
      const value = lookUp(piece.slot, scopes);
      return value === undefined || value === null ? `‹${piece.slot}›` : String(value);
    }
    const value = lookUp(piece.name, scopes);
    if (value === undefined || value === null || value === '') return '';
    const items = Array.isArray(value) ? value : [value];
    return items.map((item, i) => {
      const scope = item !== null && typeof item === 'object' ? { ...item } : { '.': item };
      scope.number = String(i + 1);
      return filledPieces(piece.inside, [...scopes, scope]);
    }).join('');
  }).join('');
}

/** The messages of a prompt with these values. */
const filled = (prompt, values) =>
  prompt.messages.map(([role, text]) => [role, filledPieces(pieces(text), [values]).trim()]);

/** The prompts that a source names: NAME@VERSION, apart from the model, which is written alike. */
function promptsIn(source, known) {
  const names = [...String(source || '').matchAll(/(?:^|[\s·←])([\w-]+)@([0-9a-f]{6,})/g)].map((found) => found[1]);
  return [...new Set(names)].filter((name) => Object.hasOwn(known, name));
}
