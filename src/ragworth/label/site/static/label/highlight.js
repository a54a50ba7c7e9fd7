// Highlights in the texts of a card: by mouse, by touch and a button, or by keyboard.

import { placeOf, toCodePoints, toUnits, unitsBefore } from "./offsets.js";

const segmenters = {};

function segments(text, granularity) {
  segments.cache ??= new Map();
  const key = `${granularity}:${text}`;
  if (!segments.cache.has(key)) {
    segmenters[granularity] ??= new Intl.Segmenter(undefined, { granularity });
    const found = [...segmenters[granularity].segment(text)]
      .filter((each) => (granularity === "word" ? each.isWordLike : each.segment.trim()))
      .map((each) => [each.index, each.index + each.segment.trimEnd().length]);
    segments.cache.set(key, found);
  }
  return segments.cache.get(key);
}

export class Highlights {
  constructor(card, facts, say) {
    this.card = card;
    this.texts = facts.texts;
    this.hashes = facts.hashes;
    this.say = say;
    this.field = card.querySelector(".spans")?.dataset.field;
    this.spans = this.field ? [...facts.spans[this.field]] : [];
    this.range = null; // the sentence or words chosen by keyboard: { element, start, end } in UTF-16 units
    for (const element of this.elements()) this.draw(element);
    this.list();
    if (!this.field) return;
    card.addEventListener("pointerup", (event) => {
      if (event.pointerType === "mouse" && event.target.closest("[data-markable]")) this.addSelection();
    });
  }

  elements() {
    return [...this.card.querySelectorAll("[data-markable]")];
  }

  // Puts the exact text into an element, with its highlights. HTML would change some line ends, this doesn't.
  draw(element) {
    const text = this.texts[element.dataset.part];
    const spans = this.of(element.dataset.part).map((span) => [toUnits(text, span.start), toUnits(text, span.end)]);
    const nodes = [];
    let done = 0;
    for (const [start, end] of spans) {
      nodes.push(document.createTextNode(text.slice(done, start)));
      const mark = document.createElement("mark");
      mark.textContent = text.slice(start, end);
      nodes.push(mark);
      done = end;
    }
    nodes.push(document.createTextNode(text.slice(done)));
    element.replaceChildren(...nodes);
  }

  of(part) {
    return this.spans.filter((span) => span.part === part).sort((a, b) => a.start - b.start);
  }

  // Highlights what is selected in the texts of this card; says whether there was something.
  addSelection() {
    const selection = document.getSelection();
    if (!this.field || !selection || selection.isCollapsed) return false;
    const chosen = selection.getRangeAt(0);
    let added = false;
    for (const element of this.elements()) {
      if (!chosen.intersectsNode(element)) continue;
      const inside = element.contains(chosen.startContainer);
      const start = inside ? unitsBefore(element, chosen.startContainer, chosen.startOffset) : 0;
      const whole = this.texts[element.dataset.part].length;
      const end = element.contains(chosen.endContainer)
        ? unitsBefore(element, chosen.endContainer, chosen.endOffset)
        : whole;
      added = this.add(element, start, end) || added;
    }
    if (added) selection.removeAllRanges();
    return added;
  }

  // Adds a span; spans that it touches become one.
  add(element, start, end) {
    const part = element.dataset.part;
    const text = this.texts[part];
    if (!text.slice(start, end).trim()) return false;
    const span = {
      part,
      start: toCodePoints(text, start),
      end: toCodePoints(text, end),
      sha256: this.hashes[part],
    };
    const apart = (one) => one.part !== part || one.end <= span.start || one.start >= span.end;
    for (const one of this.spans.filter((each) => !apart(each))) {
      span.start = Math.min(span.start, one.start);
      span.end = Math.max(span.end, one.end);
    }
    this.spans = [...this.spans.filter(apart), span];
    this.changed(element);
    this.say(`Highlighted: ${this.quote(span)}`);
    return true;
  }

  remove(span) {
    this.spans = this.spans.filter((each) => each !== span);
    this.elements().forEach((element) => this.draw(element));
    this.list();
    this.say("The highlight is removed.");
  }

  removeLast() {
    if (this.spans.length) this.remove(this.spans.at(-1));
  }

  changed(element) {
    this.draw(element);
    this.list();
  }

  quote(span) {
    const text = this.texts[span.part];
    return text.slice(toUnits(text, span.start), toUnits(text, span.end));
  }

  list() {
    const place = this.card.querySelector(".spans ol");
    if (!place) return;
    const rows = [...this.spans].sort((a, b) => a.start - b.start).map((span) => {
      const row = document.createElement("li");
      const quote = document.createElement("q");
      quote.dir = "auto";
      quote.textContent = this.quote(span);
      const button = document.createElement("button");
      button.type = "button";
      button.className = "small";
      button.textContent = "Remove";
      button.setAttribute("aria-label", `Remove the highlight ${this.quote(span)}`);
      button.addEventListener("click", () => this.remove(span));
      row.append(quote, " ", button);
      return row;
    });
    place.replaceChildren(...rows);
  }

  // Keyboard: choose by sentence or word, extend with Shift.

  get choosing() {
    return this.range !== null;
  }

  startChoosing() {
    const element = this.elements()[0];
    if (!this.field || !element) return;
    const [first] = segments(this.texts[element.dataset.part], "sentence");
    if (!first) return;
    element.focus();
    this.range = { element, start: first[0], end: first[1] };
    this.show();
    this.say("Choose with the arrow keys, then press Enter. Escape cancels.");
  }

  stopChoosing() {
    this.range = null;
    document.getSelection().removeAllRanges();
  }

  confirm() {
    const { element, start, end } = this.range;
    this.stopChoosing();
    this.add(element, start, end);
  }

  move(granularity, step, extend) {
    const { element, start, end } = this.range;
    const found = segments(this.texts[element.dataset.part], granularity);
    if (extend && step > 0) {
      const next = found.find((each) => each[1] > end);
      if (next) this.range.end = next[1];
    } else if (extend) {
      const last = found.filter((each) => each[1] < end && each[1] > start).at(-1);
      if (last) this.range.end = last[1];
    } else {
      const next = step > 0 ? found.find((each) => each[0] > start) : found.filter((each) => each[0] < start).at(-1);
      const same = found.find((each) => each[0] >= start);
      const chosen = next ?? same;
      if (chosen) [this.range.start, this.range.end] = chosen;
    }
    this.show();
  }

  show() {
    const { element, start, end } = this.range;
    const [from, to] = [placeOf(element, start), placeOf(element, end)];
    document.getSelection().setBaseAndExtent(from[0], from[1], to[0], to[1]);
    to[0].parentElement.scrollIntoView({ block: "nearest" });
    this.say(this.texts[element.dataset.part].slice(start, end));
  }
}
