"""Training examples for the embedded reader, from data that you have: prompts with the answer it is to give.

    python -m training.reader.recipe --nq FILE --musique FILE --nomiracl FILE --avoid FILE… -o examples.jsonl

The files are described in README.md beside this one. Questions and passage titles of the files named by ``--avoid`` are
left out: what the reader is judged by it must not have seen.

From each question: the gold passage and pieces of it (the answer); the gold passage with another answer put in the
place of its own (that answer: the reader goes by the passage, not by memory), or about something of an invented name
(the answer, if the question has that name too; else NO-RESPONSE); the gold passage without the sentences
that have the answer or with something vague in the place of it, its nearest neighbours by BM25 and passages about the
same thing without the answer, pieces of those, and random passages (NO-RESPONSE); contexts of 2 to 5 passages in any
order, with and without the gold passage. Besides, questions made of sentences of the passages, questions about an
invented world, and, with ``--written``, groups of passages that were written for it (``written.py``). ``wider.py`` adds
answers spread over passages, tables, FAQs, contradictions, longer contexts and attacks.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import ragworth
from ragworth.judging.labels import NO_RESPONSE_LABEL
from training.reader import wider as widening
from training.reader import written
from training.reader.bm25 import Bm25
from training.reader.cloze import alluded
from training.reader.cloze import question as made_of
from training.reader.examples import HELD_OUT, TRAIN, Example
from training.reader.invented import World
from training.reader.sources import Question, Unanswered, musique, nomiracl, nq, seen, titled
from training.reader.texts import holds, keywords, kind_of, renamed, replaced, snippet, styled, without
from training.reader.wider import Wider

LONGEST = 10
"""Words of an answer; the reader is to be brief."""
MADE, INVENTED = 0.5, 0.7
"""Share of the passages that a question is made of; questions about the invented world, by those that people asked."""


class Recipe:
    """Examples of all kinds for each question."""

    def __init__(self, questions: Sequence[Question], seed: int) -> None:
        self.questions = questions
        self.draw = random.Random(seed)
        self.world = World(seed)
        self.pool = [question.gold for question in questions]
        self.search = Bm25(self.pool)
        self.same: dict[str, list[int]] = defaultdict(list)
        """Questions whose gold passages are about the same thing."""
        self.kinds: dict[str, list[str]] = defaultdict(list)
        """Answers that can stand in each other's place."""
        for number, question in enumerate(questions):
            self.same[question.title].append(number)
            if answer := holds(question.answers, question.gold):
                self.kinds[kind_of(answer)].append(answer)

    def examples(self) -> Iterator[Example]:
        for number, question in enumerate(self.questions):
            answer = holds(question.answers, question.gold)
            if answer is not None and len(answer.split()) <= LONGEST:
                yield from self._of(number, question, answer)

    def near(self, number: int) -> list[str]:
        """Passages that look right for a question and do not have the answer, the nearest first."""
        question = self.questions[number]
        same = [self.pool[other] for other in self.same[question.title] if other != number]
        by_text = [self.pool[other] for other in self.search.best(question.text, 12) if other != number]
        by_gold = [self.pool[other] for other in self.search.best(question.gold, 8) if other != number]
        every = dict.fromkeys([*same, *question.others, *by_text, *by_gold])
        return [text for text in every if text != question.gold and holds(question.answers, text) is None]

    def _random(self, question: Question) -> str:
        """Any passage that does not have the answer."""
        for _ in range(1000):
            text = self.draw.choice(self.pool)
            if text != question.gold and holds(question.answers, text) is None:
                return text
        raise ValueError(f"nearly all passages have an answer to {question.text!r}; give more questions")

    def _of(self, number: int, question: Question, answer: str) -> Iterator[Example]:
        draw, gold = self.draw, question.gold
        near = self.near(number)
        some = draw.sample(near[:8], min(3, len(near[:8])))
        cut = without(question.answers, gold)

        def single(passage: str, said: str, kind: str, asked: str = question.text) -> Example:
            name = "abstention" if draw.random() < 0.85 else "abstention-swapped"
            return Example(name, {"query": styled(asked, draw), "passage": passage}, said, kind)

        yield single(gold, answer, "gold")
        for _ in range(2):
            yield single(snippet(gold, answer, draw), answer, "gold piece")
        if draw.random() < 0.5:
            yield single(f"{question.title}\n{gold}", answer, "gold with title")
        others = [each for each in self.kinds[kind_of(answer)] if each.lower() != answer.lower()]
        if others:
            other = draw.choice(others)
            if (changed := replaced(gold, answer, other)) and len(other.split()) <= 8:
                yield single(changed if draw.random() < 0.5 else snippet(changed, other, draw), other, "other answer")
        both = renamed(question.text, gold, question.title, self.world.name())
        if both and holds([answer], both[1]) and answer.lower() not in question.title.lower():
            yield single(both[1], answer, "other name", both[0])
            yield single(both[1], NO_RESPONSE_LABEL, "about another")
        if cut is not None:
            yield single(cut, NO_RESPONSE_LABEL, "without the answer")
            if draw.random() < 0.7:
                yield single(snippet(cut, None, draw), NO_RESPONSE_LABEL, "piece without")
        vague = alluded(gold, answer, draw)
        if vague is not None and holds(question.answers, vague) is None and draw.random() < 0.6:
            yield single(vague if draw.random() < 0.5 else snippet(vague, None, draw), NO_RESPONSE_LABEL, "alluded to")
        for text in some[:2]:
            yield single(text if draw.random() < 0.5 else snippet(text, None, draw), NO_RESPONSE_LABEL, "near miss")
        if draw.random() < 0.7:
            yield single(self._random(question), NO_RESPONSE_LABEL, "random")
        wrong = [*near[:6], *([cut] if cut else []), self._random(question), self._random(question)]
        yield from self._contexts(question, answer, wrong)

    def _contexts(self, question: Question, answer: str, wrong: list[str]) -> Iterator[Example]:
        """Several passages at once, with the gold passage among them or not."""
        draw, gold = self.draw, question.gold
        for with_gold in (True, False, *((draw.random() < 0.5,) if draw.random() < 0.7 else ())):
            size = draw.randint(2, 5)
            shown = draw.sample(wrong, min(len(wrong), size - with_gold)) + ([gold] if with_gold else [])
            shown = [
                text if draw.random() < 0.6 else snippet(text, answer if text == gold else None, draw) for text in shown
            ]
            kind = "context with gold" if with_gold else "context without"
            yield Example("answer", self._shuffled(question, shown), answer if with_gold else NO_RESPONSE_LABEL, kind)
        if draw.random() < 0.4:
            shown = [gold, *draw.sample(wrong, min(len(wrong), draw.randint(0, 2)))]
            yield Example("reply", self._shuffled(question, shown), answer, "reply")

    def _shuffled(self, question: Question, shown: list[str]) -> dict[str, Any]:
        self.draw.shuffle(shown)
        return {"query": styled(question.text, self.draw), "passages": [{"text": text} for text in shown]}


def unanswered(questions: Sequence[Unanswered], seed: int) -> Iterator[Example]:
    """Examples of questions that none of their passages answers: near misses that people judged."""
    draw = random.Random(seed)
    for question, passages in questions:
        for text in draw.sample(passages, min(2, len(passages))):
            query = styled(question, draw)
            passage = text if draw.random() < 0.5 else snippet(text, None, draw)
            yield Example("abstention", {"query": query, "passage": passage}, NO_RESPONSE_LABEL, "judged near miss")
        shown = [{"text": text} for text in draw.sample(passages, min(draw.randint(2, 5), len(passages)))]
        yield Example(
            "answer", {"query": styled(question, draw), "passages": shown}, NO_RESPONSE_LABEL, "context without"
        )


def made(passages: Sequence[tuple[str, str]], share: float, seed: int) -> Iterator[Example]:
    """Questions made of sentences of some passages, by title and text: with the answer there, and without it."""
    draw = random.Random(seed)
    for title, passage in passages:
        if draw.random() >= share or (found := made_of(title, passage, draw)) is None:
            continue
        text, answer = found
        query = text if draw.random() < 0.7 else keywords(text)
        shown = passage if draw.random() < 0.4 else snippet(passage, answer, draw)
        yield Example("abstention", {"query": query, "passage": shown}, answer, "made question")
        lacking = (alluded if draw.random() < 0.5 else _without)(passage, answer, draw)
        if lacking is not None and holds([answer], lacking) is None:
            shown = lacking if draw.random() < 0.6 else snippet(lacking, None, draw)
            yield Example(
                "abstention", {"query": query, "passage": shown}, NO_RESPONSE_LABEL, "made question, no answer"
            )


def _without(passage: str, answer: str, draw: random.Random) -> str | None:
    return without([answer], passage)


def invented(number: int, seed: int) -> Iterator[Example]:
    """Questions about an invented world: passages that answer them, near misses, and both together."""
    draw = random.Random(seed)
    for one in World(seed).questions(number):
        query = styled(one.question, draw)
        yield Example("abstention", {"query": query, "passage": draw.choice(one.supporting)}, one.answer, "invented")
        for text in draw.sample(one.missing, min(2, len(one.missing))):
            yield Example("abstention", {"query": query, "passage": text}, NO_RESPONSE_LABEL, "invented near miss")
        if draw.random() < 0.3 and len(one.missing) > 1:
            with_gold = draw.random() < 0.5
            shown = [*one.missing[: draw.randint(1, 4)], *([draw.choice(one.supporting)] if with_gold else [])]
            draw.shuffle(shown)
            kind = "context with gold" if with_gold else "context without"
            values = {"query": query, "passages": [{"text": text} for text in shown]}
            yield Example("answer", values, one.answer if with_gold else NO_RESPONSE_LABEL, kind)


class Part(NamedTuple):
    """Examples for training, by pass, or for choosing and calibration."""

    name: str
    turn: int
    examples: Iterator[Example]


def parts(
    questions: Sequence[Question],
    empty: Sequence[Unanswered],
    groups: Sequence[written.Group] = (),
    *,
    held_out: float,
    passes: int,
    seed: int,
    wider: Wider,
) -> Iterator[Part]:
    """Examples for each pass, drawn anew from all but the held-out questions; then those of the held-out ones.

    Questions are held out by the titles of their passages, so that no passage is on both sides; of the ``groups`` one
    in twelve is, and another one is left out.
    """
    learned, kept, _ = written.split(groups)
    names = sorted({question.title for question in questions})
    held = set(random.Random(seed).sample(names, round(len(names) * held_out)))
    spreads = wider.spreads(held)
    for name, wanted in ((TRAIN, False), (HELD_OUT, True)):
        mine = [question for question in questions if (question.title in held) is wanted]
        for number in range(1 if wanted else passes):
            mixed = seed + 1000 * number + wanted
            yield Part(name, number, Recipe(mine, mixed).examples())
            passages = [(question.title, question.gold) for question in mine]
            if not wanted:
                yield Part(name, number, unanswered(empty, mixed))
                passages += [titled(text) for question in empty for text in question.passages]
            yield Part(name, number, made(passages, MADE, mixed))
            yield Part(name, number, invented(round(len(mine) * INVENTED), mixed))
            yield Part(name, number, written.held(kept) if wanted else written.examples(learned, mixed))
            if not wanted:
                yield Part(name, number, widening.examples(mine, learned, spreads, mixed))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Make training examples for the embedded reader.")
    parser.add_argument("--nq", type=Path, required=True)
    parser.add_argument("--musique", type=Path)
    parser.add_argument("--nomiracl", type=Path, help="questions without any relevant passage")
    parser.add_argument("--written", type=Path, nargs="*", default=[], help="groups of passages, as in written/")
    parser.add_argument("--avoid", type=Path, nargs="*", default=[], help="files that the reader will be judged by")
    parser.add_argument("--held-out", type=float, default=0.1, help="share kept for choosing and calibration")
    parser.add_argument("--passes", type=int, default=4, help="times that each question is drawn anew")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-o", "--output", type=Path, required=True)
    given = parser.parse_args(arguments)
    questions = [*nq(given.nq), *(musique(given.musique) if given.musique else [])]
    avoided = seen(given.avoid)
    kept = [question for question in questions if not avoided.has(question)]
    groups = [group for path in given.written for group in written.read(path)]
    empty = [avoided.left(each) for each in nomiracl(given.nomiracl)] if given.nomiracl else []
    wider = Wider(given.musique, avoided)
    sets, counts = random.Random(given.seed), Counter[tuple[str, str]]()
    with given.output.open("w", encoding="utf-8") as file:
        for number, part in enumerate(
            parts(kept, empty, groups, held_out=given.held_out, passes=given.passes, seed=given.seed, wider=wider)
        ):
            learned = part.name == TRAIN
            for example in widening.with_attacks(part.examples, given.seed + number) if learned else part.examples:
                prompts = "fenced" if learned and sets.random() < widening.FENCED else "plain"
                counts[part.name, example.kind] += 1
                row = {"part": part.name, "pass": part.turn, "kind": example.kind, "answer": example.answer}
                row["messages"] = ragworth.prompt(example.prompt, prompts).render(example.values).messages
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
    print(f"{len(questions)} questions, {len(kept)} after leaving out what the reader will be judged by")
    for (name, kind), count in sorted(counts.items()):
        print(f"{name:<10} {kind:<20} {count:>6}")


if __name__ == "__main__":
    main()
