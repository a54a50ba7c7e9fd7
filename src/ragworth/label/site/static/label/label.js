// The page on which people label: one card at a time, the next one loaded in advance, everything by keyboard.

import { Highlights } from "./highlight.js";
import { AnswerQueue, newId, send } from "./queue.js";

const main = document.querySelector("main");
const place = document.getElementById("card-place");
const status = document.getElementById("status");
const task = JSON.parse(document.getElementById("task-facts").textContent);
const cards = new Map(); // by item: the cards that the server may still refuse
let current = null; // { element, item, highlights, shown, seconds }
let following = null; // the next card's HTML
let loading = null;

const say = (text, kind = "") => {
  status.textContent = text;
  status.className = `notice ${kind}`;
};

const queue = new AnswerQueue(task.queue, main.dataset.answer, {
  stored(answer, body) {
    cards.delete(answer.item);
    showProgress(body.progress);
    if (body.extra) say("Your time for that item was up and others have answered it. Your answer is kept but doesn’t count.");
    else if (body.replaced) say("Saved. It replaces your earlier answer.");
    if (body.card) offer(body.card);
    else if (!current) finish();
  },
  refused(answer, body) {
    const kept = cards.get(answer.item);
    cards.delete(answer.item);
    const problems = body.problems ?? ["The server refused an answer."];
    if (kept) show(kept, problems);
    else say(problems.join(" "), "error");
  },
  waiting(count, reason) {
    if (count) say(`${reason} ${count === 1 ? "1 answer is" : `${count} answers are`} kept in this browser and sent again.`, "error");
    else if (status.className.includes("error")) say("All answers are saved.");
  },
});
queue.holding = () => [current, following].filter(Boolean).map((each) => each.item);

// Cards

function parse(html) {
  const holder = document.createElement("template");
  holder.innerHTML = html;
  const element = holder.content.querySelector(".card");
  return { element, item: Number(element.dataset.item) };
}

function offer(html) {
  const card = parse(html);
  if (card.item === current?.item || card.item === following?.item || cards.has(card.item)) return;
  if (current) following ??= card;
  else show(card);
}

function show(card, problems = []) {
  if (current && current !== card) following = { element: current.element, item: current.item, made: current };
  current = card.made ?? card;
  if (!current.highlights) {
    const facts = JSON.parse(current.element.querySelector("script").textContent);
    current.suggested = facts.suggested;
    current.highlights = new Highlights(current.element, facts, say);
    current.shown = new Date();
    current.seconds = 0;
    connect(current);
  }
  place.replaceChildren(current.element);
  document.getElementById("finished").hidden = true;
  document.querySelector(".desk").hidden = false;
  showProblems(problems);
  scrollTo(0, 0);
  if (!following) preload();
}

function finish() {
  current = null;
  place.replaceChildren();
  document.querySelector(".desk").hidden = true;
  const end = document.getElementById("finished");
  end.hidden = false;
  end.querySelector("h1").focus();
}

function preload() {
  loading ??= send(main.dataset.next, { holding: queue.holding() })
    .then(({ ok, body }) => {
      if (!ok) return;
      showProgress(body.progress);
      if (body.card) offer(body.card);
      else if (!current && !queue.entries().length) finish();
    })
    .catch(() => {})
    .finally(() => {
      loading = null;
    });
  return loading;
}

async function advance() {
  const next = following;
  following = null;
  current = null;
  if (next) return show(next);
  place.replaceChildren();
  await Promise.allSettled([queue.running, loading]);
  if (!current) await preload();
}

// Answers

function valueOf(card) {
  const value = {};
  for (const field of task.fields) {
    if (field.type === "choice") {
      const chosen = card.element.querySelector(`fieldset[data-field="${field.name}"] input:checked`);
      if (chosen) value[field.name] = chosen.value;
    } else if (field.type === "spans") {
      if (card.highlights.spans.length) value[field.name] = card.highlights.spans;
    } else {
      const text = card.element.querySelector(`textarea[name="${field.name}"]`).value.trim();
      if (text) value[field.name] = text;
    }
  }
  return value;
}

// What is missing, by the task's own rules. The server checks again.
function missing(value) {
  const found = task.fields
    .filter((field) => field.required && !(field.name in value))
    .map((field) => `${field.title}: ${field.type === "choice" ? "choose a value" : "fill this in"}.`);
  if (found.length) return found;
  return task.rules
    .filter((rule) => rule.values.includes(value[rule.field]) && rule.requires in value === rule.empty)
    .map((rule) => rule.message);
}

function showProblems(problems) {
  const list = current.element.querySelector(".problems");
  list.replaceChildren(...problems.map((text) => Object.assign(document.createElement("li"), { textContent: text })));
}

function submit(kind, value) {
  const card = current;
  const answered = new Date();
  cards.set(card.item, card);
  const answer = {
    id: newId(),
    item: card.item,
    kind,
    value,
    comment: card.element.querySelector("[name=comment]").value,
    shown_at: card.shown.toISOString(),
    answered_at: answered.toISOString(),
    seconds: Math.round(card.seconds * 10) / 10,
    suggested: card.suggested,
  };
  card.shown = answered;
  if (!status.className.includes("error")) say(kind === "skip" ? "Skipped." : "Saved.");
  advance();
  queue.add(answer);
}

function save() {
  const value = valueOf(current);
  const problems = missing(value);
  showProblems(problems);
  if (!problems.length) submit("answer", value);
}

function skip() {
  const reason = current.element.querySelector("[name=reason]").value.trim();
  if (reason) submit("skip", { reason });
  else showProblems(["Say why you skip this item."]);
}

let undoing = null; // the id of an undo whose response is missing: sent again, it undoes nothing twice

async function undo() {
  if (!main.dataset.undo) return;
  await queue.flush();
  if (queue.entries().length) return say("Undo needs a connection. Your answers are kept in this browser.", "error");
  try {
    undoing ??= newId();
    const { ok, body } = await send(main.dataset.undo, { id: undoing });
    undoing = null;
    if (!ok) return say((body.problems ?? ["That didn’t work."]).join(" "), "error");
    if (!body.card) return say("There is nothing to undo.");
    showProgress(body.progress);
    show(parse(body.card));
    say("Your last answer is taken back. Choose again.");
  } catch {
    say("Undo needs a connection.", "error");
  }
}

// Progress and time

function showProgress(progress) {
  if (!progress) return;
  const bar = document.getElementById("progress");
  const total = progress.done + progress.left;
  [bar.value, bar.max] = [progress.done, Math.max(1, total)];
  const minutes = progress.seconds === null ? null : Math.ceil((progress.seconds * progress.left) / 60);
  const left = minutes === null || !progress.left ? "" : ` · about ${minutes < 90 ? `${minutes} min` : `${Math.round(minutes / 60)} h`} left`;
  document.getElementById("progress-text").textContent = `${progress.done} of ${total}${left}`;
}

setInterval(() => {
  if (current && document.visibilityState === "visible" && document.hasFocus()) current.seconds += 0.1;
}, 100);

// Leases: renewed while somebody works on the page, so a long text isn't given to somebody else

let active = false;
for (const kind of ["keydown", "pointerdown", "pointermove", "scroll", "wheel"]) {
  addEventListener(kind, () => (active = true), { passive: true, capture: true });
}

async function hold() {
  const card = current;
  if (!active || !card) return;
  active = false;
  try {
    const { ok, body } = await send(main.dataset.hold, { holding: queue.holding() });
    if (ok && card === current && body.lost.includes(card.item)) say("Your time for this item was up and somebody else has it now. If you answer, your answer is kept and may not count.");
  } catch {
    active = true;
  }
}

if (main.dataset.hold) setInterval(hold, Math.min(60, task.lease / 3) * 1000);

// Keys and buttons

function reveal(name) {
  const box = current.element.querySelector(`.${name}`);
  if (!box) return;
  box.hidden = false;
  box.querySelector("textarea").focus();
}

const actions = {
  undo,
  help: () => document.getElementById("help").showModal(),
  comment: () => reveal("comment"),
  skip: () => reveal("skip"),
  "confirm-skip": skip,
  highlight: () => current.highlights.addSelection() || current.highlights.startChoosing(),
};
const shortcuts = { u: "undo", "?": "help", c: "comment", s: "skip", h: "highlight" };

document.addEventListener("click", (event) => {
  const name = event.target.closest("[data-action]")?.dataset.action;
  if (name && (current || name === "undo" || name === "help")) actions[name]();
});

// Keeps the selection while the button is pressed.
document.addEventListener("pointerdown", (event) => {
  if (event.target.closest("[data-action=highlight]")) event.preventDefault();
});

function connect(card) {
  card.element.querySelector("form").addEventListener("submit", (event) => {
    event.preventDefault();
    save();
  });
}

function step(direction) {
  const fields = [...current.element.querySelectorAll("fieldset.choice")];
  const field = document.activeElement.closest?.("fieldset.choice") ?? fields.find((each) => !each.querySelector(":checked")) ?? fields[0];
  const options = [...(field?.querySelectorAll("input") ?? [])];
  if (!options.length) return;
  const at = options.findIndex((each) => each.checked);
  const next = options[at < 0 ? (direction > 0 ? 0 : options.length - 1) : (at + direction + options.length) % options.length];
  next.checked = true;
  next.focus();
}

function chooseByKeyboard(event) {
  const moves = { ArrowDown: ["sentence", 1], ArrowUp: ["sentence", -1], ArrowRight: ["word", 1], ArrowLeft: ["word", -1] };
  if (event.key in moves) current.highlights.move(...moves[event.key], event.shiftKey);
  else if (event.key === "Enter" || event.key === "h") current.highlights.confirm();
  else if (event.key === "Escape") current.highlights.stopChoosing();
  else return false;
  return true;
}

function pressed(event) {
  const writing = event.target.matches("textarea, input:not([type=radio]), select");
  if (event.key === "Enter" && writing && (event.ctrlKey || event.metaKey)) {
    event.target.name === "reason" ? skip() : save();
    return true;
  }
  if (event.key === "Escape" && writing) {
    event.target.blur();
    return true;
  }
  if (writing || event.ctrlKey || event.metaKey || event.altKey) return false;
  if (current?.highlights.choosing && chooseByKeyboard(event)) return true;
  if (current) {
    const option = [...current.element.querySelectorAll("input[data-key]")].find((each) => each.dataset.key === event.key);
    if (option) {
      option.checked = true;
      option.focus();
      return true;
    }
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      step(event.key === "ArrowDown" ? 1 : -1);
      return true;
    }
    if (event.key === "Enter" && !event.target.closest("button, a, summary")) {
      save();
      return true;
    }
    if (event.key === "x") {
      current.highlights.removeLast();
      return true;
    }
  }
  if (event.key === "i") {
    const box = document.getElementById("instructions");
    box.open = !box.open;
    return true;
  }
  const name = shortcuts[event.key];
  if (!name || (!current && name !== "undo" && name !== "help")) return false;
  actions[name]();
  return true;
}

document.addEventListener("keydown", (event) => {
  if (document.getElementById("help").open || event.isComposing) return;
  if (pressed(event)) event.preventDefault();
});

// Start

showProgress(JSON.parse(document.getElementById("progress-facts").textContent));
const first = place.querySelector(".card");
if (matchMedia("(max-width: 60rem)").matches) document.getElementById("instructions").open = false;
if (first) show({ element: first, item: Number(first.dataset.item) });
else if (!queue.entries().length) finish();
queue.flush();
document.documentElement.dataset.ready = "yes";
