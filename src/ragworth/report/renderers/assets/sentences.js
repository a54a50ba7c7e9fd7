/* Sentences of an answer and the passages behind them: pointing to one marks the others; a click keeps the marks. */

let pinned = null;

const numbersIn = (words) => new Set((words || '').split(' ').filter(Boolean));

/** Mark what belongs to a sentence or a passage; without one, to the sentence that was clicked. */
function markFor(view, pointed) {
  const source = pointed || (pinned && view.contains(pinned) ? pinned : null);
  const { number, behind, against } = source ? source.dataset : {};
  for (const each of view.querySelectorAll('.shares li')) {
    each.classList.toggle('marked', numbersIn(behind).has(each.dataset.number));
    each.classList.toggle('opposed', numbersIn(against).has(each.dataset.number));
  }
  for (const each of view.querySelectorAll('.sentence')) {
    each.classList.toggle('marked', each === source || numbersIn(each.dataset.behind).has(number));
  }
}

/** A second click takes the marks away. */
function pin(sentence) {
  const before = pinned;
  pinned = before === sentence ? null : sentence;
  for (const each of [before, pinned].filter(Boolean)) {
    each.firstElementChild.setAttribute('aria-pressed', String(each === pinned));
    markFor(each.closest('.behind'));
  }
}

function watchSentences() {
  for (const each of document.querySelectorAll('.sentence, .shares li')) {
    const view = each.closest('.behind');
    each.addEventListener('pointerenter', () => markFor(view, each));
    each.addEventListener('pointerleave', () => markFor(view));
  }
  for (const sentence of document.querySelectorAll('.sentence')) {
    const words = sentence.firstElementChild;
    for (const [name, value] of Object.entries({ role: 'button', tabindex: '0', 'aria-pressed': 'false' })) words.setAttribute(name, value);
    words.addEventListener('click', () => pin(sentence));
    words.addEventListener('keydown', (event) => {
      if (event.key === 'Enter' || event.key === ' ') { event.preventDefault(); pin(sentence); }
    });
  }
}
