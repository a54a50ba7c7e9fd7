// Positions in a text. The page counts UTF-16 units, the server counts code points.

export function toCodePoints(text, units) {
  return [...text.slice(0, units)].length;
}

export function toUnits(text, points) {
  let units = 0;
  for (const character of text) {
    if (points-- <= 0) break;
    units += character.length;
  }
  return units;
}

// Where a place in the document is in the text of an element, in UTF-16 units.
export function unitsBefore(element, node, offset) {
  const range = document.createRange();
  range.selectNodeContents(element);
  range.setEnd(node, offset);
  return range.toString().length;
}

// The document's place of a position in the text of an element.
export function placeOf(element, units) {
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  let last = null;
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (units <= node.data.length) return [node, units];
    units -= node.data.length;
    last = node;
  }
  return last ? [last, last.data.length] : [element, 0];
}
