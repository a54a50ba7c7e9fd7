// Answers on their way to the server. Each has an id of its own and stays in the browser's storage until the server
// has confirmed it, so nothing is lost if a request fails, and nothing is stored twice if a response is lost.

const RETRY_AFTER = [1, 2, 5, 10, 20]; // seconds

export function newId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  const digits = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return digits.replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12})$/, "$1-$2-4$3-a$4-$5");
}

export async function send(url, data) {
  const token = document.querySelector("[name=csrfmiddlewaretoken]").value;
  const response = await fetch(url, {
    method: "POST",
    headers: { "Content-Type": "application/json", Accept: "application/json", "X-CSRFToken": token },
    body: JSON.stringify(data),
    credentials: "same-origin",
  });
  let body = {};
  try {
    body = await response.json();
  } catch {
    if (response.ok) throw new Error("The response is incomplete.");
  }
  return { ok: response.ok, status: response.status, body };
}

export class AnswerQueue {
  // `on` has the functions stored(answer, body), refused(answer, body) and waiting(count, reason).
  constructor(name, url, on) {
    this.prefix = `ragworth:${name}:`;
    this.url = url;
    this.on = on;
    this.memory = new Map(); // where the browser has no storage
    this.failures = 0;
    this.running = null;
    this.holding = () => [];
    addEventListener("online", () => this.flush());
    addEventListener("beforeunload", (event) => {
      if (this.memory.size) event.preventDefault();
    });
  }

  entries() {
    const stored = [];
    try {
      for (const key of Object.keys(localStorage)) {
        if (key.startsWith(this.prefix)) stored.push(JSON.parse(localStorage.getItem(key)));
      }
    } catch {
      // No storage: the answers in memory are all there are.
    }
    return [...stored, ...this.memory.values()].sort((a, b) => a.number - b.number);
  }

  add(answer) {
    const entry = { number: Date.now() + performance.now() / 1e6, answer };
    try {
      localStorage.setItem(this.prefix + answer.id, JSON.stringify(entry));
    } catch {
      this.memory.set(answer.id, entry);
    }
    return this.flush();
  }

  remove(answer) {
    this.memory.delete(answer.id);
    try {
      localStorage.removeItem(this.prefix + answer.id);
    } catch {
      // It was in memory only.
    }
  }

  // Sends everything, one after another, in the order of the answers.
  flush() {
    clearTimeout(this.timer);
    this.running ??= this.sendAll().finally(() => {
      this.running = null;
    });
    return this.running;
  }

  async sendAll() {
    for (let entries = this.entries(); entries.length; entries = this.entries()) {
      const [{ answer }] = entries;
      let result;
      try {
        result = await send(this.url, { ...answer, holding: this.holding() });
      } catch {
        return this.wait("The server doesn’t answer.");
      }
      if (result.ok) {
        this.failures = 0;
        this.remove(answer);
        this.on.stored(answer, result.body);
      } else if (result.status >= 500 || result.status === 429) {
        return this.wait("The server has a problem.");
      } else if (result.status === 401 || result.status === 403) {
        return this.wait("You are signed out: sign in again in another tab, then reload this page.");
      } else {
        this.remove(answer);
        this.on.refused(answer, result.body);
      }
    }
    this.on.waiting(0, "");
  }

  wait(reason) {
    const seconds = RETRY_AFTER[Math.min(this.failures++, RETRY_AFTER.length - 1)];
    this.timer = setTimeout(() => this.flush(), seconds * 1000);
    this.on.waiting(this.entries().length, reason);
  }
}
