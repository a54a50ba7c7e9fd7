"""Questions that nobody asked, in the manner of those that people did: written by the model itself.

    python -m training.reader.questions --nq FILE --musique FILE --nomiracl FILE --avoid FILE… \\
        --weights FILE --reader ADAPTER -o asked.jsonl

It is taught on questions with their passage and answer to write the question, and then writes one for names, dates and
numbers of all passages. Kept is what a reader (an adapter) would answer from the passage. ``training.reader.recipe
--asked`` takes the file along.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

import ragworth
from ragworth.judging.answerable import LABEL
from ragworth.llm.contract import Message, Prompt
from ragworth.llm.local.adapter import Adapter
from ragworth.llm.local.writing import Writer
from training.reader.cloze import spans
from training.reader.model import adapt, read
from training.reader.rows import Row, batches, end_of
from training.reader.sources import Question, Seen, musique, nomiracl, nq, paragraphs, plain, seen, titled
from training.reader.texts import holds, snippet
from training.reader.train import autocast, declining, fit

ASK = "Write the question that someone would type to whom the passage gives this answer.\n\nPassage:\n{}\n\nAnswer: {}"


class Written(NamedTuple):
    """A question with its answer, and the passage that it was written for."""

    question: str
    answer: str
    passage: str
    title: str


def prompt(passage: str, answer: str) -> Prompt:
    return Prompt((Message("user", ASK.format(passage, answer)),))


def lessons(questions: Sequence[Question], passes: int, seed: int) -> Iterator[tuple[Prompt, str]]:
    """Passage and answer, with the question that somebody asked."""
    draw = random.Random(seed)
    for _ in range(passes):
        for question in questions:
            if (answer := holds(question.answers, question.gold)) is not None:
                shown = question.gold if draw.random() < 0.6 else snippet(question.gold, answer, draw)
                yield prompt(shown, answer), question.text.strip().rstrip("?").strip()


def asked_for(passages: Sequence[tuple[str, str]], each: int, seed: int) -> list[Written]:
    """Names, dates and numbers of passages that a question is to be written for."""
    draw = random.Random(seed)
    made = []
    for title, passage in passages:
        found = [answer for answer in dict.fromkeys(spans(passage)) if answer.lower() not in title.lower()]
        made += [Written("", answer, passage, title) for answer in draw.sample(found, min(each, len(found)))]
    return made


def sensible(one: Written) -> bool:
    """Whether a question could be one: some words, none of its answer, about the passage."""
    words = one.question.split()
    inside = set(re.findall(r"\w{4,}", one.passage.lower())) & set(re.findall(r"\w{4,}", one.question.lower()))
    return 4 <= len(words) <= 22 and one.answer.lower() not in one.question.lower() and bool(inside)


def say(model: Any, writer: Writer, wanted: Sequence[Written], given: argparse.Namespace) -> list[Written]:
    """Have the questions written, those of similar length together."""
    end = end_of(writer)
    prompts = [prompt(one.passage, one.answer) for one in wanted]
    ids = [written.ids for written in writer.ids(prompts, continued=True)]
    order = sorted(range(len(ids)), key=lambda number: len(ids[number]))
    made: dict[int, str] = {}
    for start in range(0, len(order), given.batch):
        some = order[start : start + given.batch]
        longest = max(len(ids[number]) for number in some)
        rows = torch.tensor([[0] * (longest - len(ids[n])) + list(ids[n]) for n in some], device=given.device)
        mask = torch.tensor([[0] * (longest - len(ids[n])) + [1] * len(ids[n]) for n in some], device=given.device)
        with torch.no_grad(), autocast(given.device):
            out = model.generate(
                input_ids=rows, attention_mask=mask, max_new_tokens=28, do_sample=True, temperature=0.7, top_p=0.9,
                eos_token_id=end, pad_token_id=end,
            )  # fmt: skip
        for number, row in zip(some, out[:, longest:].tolist(), strict=True):
            text = writer.tokenizer.decode([token for token in row if token not in writer.ends])
            made[number] = text.strip().split("\n")[0].strip()
    return [one._replace(question=made[number]) for number, one in enumerate(wanted)]


def answerable(path: Path, given: argparse.Namespace, some: Sequence[Written]) -> list[Written]:
    """The questions that a reader does not decline to answer from their passage."""
    model, writer = read(given.weights, given.device)
    deltas = Adapter(path).deltas()
    with torch.no_grad():
        for name, matrix in model.named_parameters():
            if name in deltas:
                matrix.add_(torch.from_numpy(deltas[name]).to(matrix))
    model.eval()
    prompts = [ragworth.prompt("abstention").render({"query": one.question, "passage": one.passage}) for one in some]
    rows = [Row(list(each.ids), len(each.ids), "asked", False, 0) for each in writer.ids(prompts, continued=True)]
    ids = writer.after(next(iter(writer.ids(prompts[:1], continued=True))), LABEL)
    assert ids is not None
    odds = declining(model, rows, ids[0], given.tokens, given.device)
    return [one for one, value in zip(some, odds.tolist(), strict=True) if value < 0]


def sources(given: argparse.Namespace) -> tuple[list[Question], list[tuple[str, str]]]:
    """Questions to learn from, and passages to write questions for; nothing that is to be avoided in either."""
    avoided: Seen = seen(given.avoid)
    every = [*nq(given.nq), *(musique(given.musique) if given.musique else [])]
    questions = [question for question in every if not avoided.has(question)]
    passages = [(question.title, question.gold) for question in questions]
    passages += paragraphs(given.musique) if given.musique else []
    for question in (each for path in given.nomiracl for each in nomiracl(path)):
        passages += [titled(text) for text in avoided.left(question).passages]
    kept = {text: (title, text) for title, text in passages if title and title not in avoided.titles}
    return questions, list(kept.values())


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Write questions for passages.")
    parser.add_argument("--nq", type=Path, required=True)
    parser.add_argument("--musique", type=Path)
    parser.add_argument("--nomiracl", type=Path, nargs="*", default=[], help="prompts with passages")
    parser.add_argument("--avoid", type=Path, nargs="*", default=[])
    parser.add_argument("--weights", type=Path, required=True)
    parser.add_argument("--reader", type=Path, help="adapter of a reader that must be able to answer")
    parser.add_argument("--each", type=int, default=4, help="questions for a passage")
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--rate", type=float, default=5e-4)
    parser.add_argument("--tokens", type=int, default=32768, help="of a batch to learn from")
    parser.add_argument("--batch", type=int, default=384, help="questions written together")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("-o", "--output", type=Path, required=True)
    given = parser.parse_args(arguments)
    torch.manual_seed(given.seed)
    questions, passages = sources(given)
    model, writer = read(given.weights, given.device)
    adapters = adapt(model, given.rank, 2.0 * given.rank, 0.05)
    learning: list[torch.Tensor] = [matrix for one in adapters.values() for matrix in (one.down, one.up)]
    rows = _rows(lessons(questions, given.passes, given.seed), writer)
    plan = batches(rows, given.tokens, random.Random(given.seed))
    print(f"{len(rows)} lessons, {len(passages)} passages")
    fit(model, learning, plan, len(plan), given)
    model.eval()
    written = say(model, writer, asked_for(passages, given.each, given.seed), given)
    known = {plain(question.text) for question in questions}
    good = [one for one in written if sensible(one) and plain(one.question) not in known]
    kept = answerable(given.reader, given, good) if given.reader else good
    print(f"{len(written)} questions written, {len(good)} sensible, {len(kept)} that the reader answers")
    with given.output.open("w", encoding="utf-8") as file:
        for one in kept:
            file.write(json.dumps(one._asdict(), ensure_ascii=False) + "\n")


def _rows(some: Iterator[tuple[Prompt, str]], writer: Writer) -> list[Row]:
    """Lessons as tokens."""
    pairs, end, made = list(some), end_of(writer), []
    for (_, question), written in zip(pairs, writer.ids([each for each, _ in pairs], continued=True), strict=True):
        after = writer.after(written, question)
        if after is not None and len(written.ids) + len(after) < 1024:
            made.append(Row([*written.ids, *after, end], len(written.ids), "lesson", False, 0))
    return made


if __name__ == "__main__":
    main()
