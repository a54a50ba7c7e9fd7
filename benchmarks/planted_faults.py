"""Precision and recall of the checks of ragworth build on 340 planted faults, and on 300 that are held out.

    python -m benchmarks.planted_faults [--held-out] [--encoder none]

The corpus is invented, so that the truth is known: passages about places that don't exist, clean questions in words of
their own, and copies of them with one fault each. The rules of the checks were revised on these faults, so there is a
second set that they have never seen (`held_out_faults.py`). The reader is perfect: it answers exactly if the passages
in its prompt state the facts, so the table measures the checks and not a model.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

from benchmarks.held_out_faults import build_held_out_world, untouched_questions
from benchmarks.planted_world import World, measure, quality_table, run_world

from ragworth.build.question_set import Question
from ragworth.build.questions.contract import SourceSpan

PLACES = 150
PLANTED = {
    "verbatim": 40,
    "stated": 20,
    "self-contained": 45,
    "language": 30,
    "copied": 35,
    "duplicate": 40,
    "answerable": 40,
    "closed-book": 30,
    "each-passage": 20,
    "unanswerable": 20,
    "round-trip": 20,
}
"""Faults by the check that should find them: 340 in all."""

KINDS = (
    "lighthouse",
    "museum",
    "bridge",
    "observatory",
    "theatre",
    "harbour",
    "library",
    "windmill",
    "brewery",
    "abbey",
)
ONSETS, ENDINGS = (
    ("Vel", "Mar", "Quo", "Tren", "Os", "Bal", "Cor", "Dun", "Fen", "Gar"),
    ("drin", "row", "beck", "wick", "ford"),
)
PEOPLE = (
    "Tomasina Oake",
    "Osric Pell",
    "Ida Marchbank",
    "Leopold Finch",
    "Greta Sorley",
    "Amos Tindall",
    "Rhea Calder",
)
GERMAN = "Wer war für den Bau von {} verantwortlich und wie lange hat das in der Gegend gedauert?"
FRENCH = "Quand est-ce que les travaux de {} ont été terminés dans la région et par qui ?"
DEICTIC = (
    "According to the passage, {}",
    "In the text above, {}",
    "What does the author say about it, and {}",
    "{} as described in this article?",
    "Based on the document provided, the passage states what about {}",
)
PRONOUNS = (
    "When was it completed?",
    "Who was in charge of building it?",
    "How high is it?",
    "What are these rooms used for?",
    "Where did they move afterwards?",
    "Why did he leave?",
    "How many of them are there?",
    "Is this the largest one?",
)


class Place(NamedTuple):
    """An invented place and the sentences about it."""

    name: str
    year: int
    builder: str
    height: int
    built: str
    measured: str

    @property
    def passage(self) -> str:
        return f"p-{self.name.replace(' ', '-')}"

    @property
    def text(self) -> str:
        return f"{self.built} {self.measured} Visitors come mostly in the summer months."


def places(draw: random.Random) -> Iterator[Place]:
    names = [f"{onset}{ending} {kind}" for onset in ONSETS for ending in ENDINGS for kind in KINDS]
    for name in draw.sample(names, PLACES):
        year, height, builder = draw.randint(1500, 1990), draw.randint(11, 399), draw.choice(PEOPLE)
        built = f"The {name} was finished in {year}, and the works were led by {builder}."
        yield Place(name, year, builder, height, built, f"Its main tower rises {height} metres over the town square.")


def questions_about(place: Place) -> list[tuple[str, str, str]]:
    """Clean questions in words of their own: text, answer, and the sentence that answers it."""
    return [
        (f"When did construction of the {place.name} come to an end?", str(place.year), place.built),
        (f"Who directed construction at the {place.name}?", place.builder, place.built),
        (f"How tall is the {place.name}?", f"{place.height} metres", place.measured),
    ]


def build_world(seed: int = 0) -> World:
    draw = random.Random(seed)
    world, every = World(), list(places(draw))
    for place in every:
        world.passages[place.passage] = place.text
    clean: list[Question] = []
    for number, place in enumerate(every):
        text, answer, sentence = questions_about(place)[number % 3]
        question = Question(
            f"clean-{number}", text, (answer,), (place.passage,), (SourceSpan(place.passage, sentence),), True
        )
        clean.append(question)
        world.add(question, ((sentence,), answer))
    _plant_pairs(world, every, draw)
    for check, count in PLANTED.items():
        if check in PLANTERS:
            for number in range(count):
                PLANTERS[check](world, f"{check}-{number}", clean[number], every[number], number)
    return world


def _verbatim(world: World, id: str, clean: Question, place: Place, number: int) -> None:
    """A changed word, a changed number, or a paraphrase instead of a quotation. Asked in other words."""
    changed = (
        place.built.replace("finished", "completed"),
        place.built.replace(str(place.year), str(place.year + 1)),
        f"{place.builder} finished the {place.name} in {place.year}.",
    )[number % 3]
    text = f"Under whose direction, and until which year, was the {place.name} put up?"
    answer = f"{place.builder}, {place.year}"
    question = replace(clean, id=id, text=text, answers=(answer,), spans=(SourceSpan(place.passage, changed),))
    world.add(question, ((place.built,), answer), fault="verbatim")


def _stated(world: World, id: str, clean: Question, place: Place, number: int) -> None:
    """An answer with a number, or a name, that the passage doesn't have."""
    text = f"What or who did the town council of {1200 + number} remember about the {place.name}?"
    answer = (f"its {place.height + 400} steps", f"Ulf Brandt{'e' * number}")[number % 2]
    span = (SourceSpan(place.passage, place.built),)
    world.add(replace(clean, id=id, text=text, answers=(answer,), spans=span), ((place.built,), answer), fault="stated")


def _self_contained(world: World, id: str, clean: Question, place: Place, number: int) -> None:
    if number % 3 == 2:
        text = f"{PRONOUNS[(number // 3) % len(PRONOUNS)][:-1]} in {1000 + number}?"
    else:
        rest = f"what happened at the {place.name} in {place.year}?"
        text = DEICTIC[number % len(DEICTIC)].format(rest)
    question = replace(
        clean, id=id, text=text, answers=(f"event {number}",), spans=(SourceSpan(place.passage, place.built),)
    )
    world.add(question, ((place.built,), f"event {number}"), fault="self-contained")


def _language(world: World, id: str, clean: Question, place: Place, number: int) -> None:
    text = (GERMAN if number % 2 else FRENCH).format(place.name)
    question = replace(
        clean, id=id, text=text, answers=(place.builder,), spans=(SourceSpan(place.passage, place.built),)
    )
    world.add(question, ((place.built,), place.builder), fault="language")


def _copied(world: World, id: str, clean: Question, place: Place, number: int) -> None:
    text = (
        f"The {place.name} was finished in {place.year}, and the works were led by whom?",
        f"The {place.name} was finished in which year, and the works were led by {place.builder}?",
    )[number % 2]
    answer = (place.builder, str(place.year))[number % 2]
    question = replace(clean, id=id, text=text, answers=(answer,), spans=(SourceSpan(place.passage, place.built),))
    world.add(question, ((place.built,), answer), fault="copied")


def _duplicate(world: World, id: str, clean: Question, place: Place, number: int) -> None:
    """The clean question with other blanks, another ending, another order, or a polite frame."""
    changed = (
        f"{clean.text[:-1]} ?",
        clean.text.lower(),
        clean.text.replace("the ", "The ").replace("construction", "the construction"),
        f"{clean.text[:-1]}, please?",
    )[number % 4]
    world.add(replace(clean, id=id, text=changed), *world.needs[clean.text], fault="duplicate")


def _answerable(world: World, id: str, clean: Question, place: Place, number: int) -> None:
    """A fact that the passage doesn't have, or an accepted answer that the passage contradicts."""
    text = f"What did a ticket for the {place.name} cost in its opening year number {number}?"
    span = (SourceSpan(place.passage, place.built),)
    if number % 2:
        world.add(replace(clean, id=id, text=text, answers=("three crowns",), spans=span), fault="answerable")
        return
    text = f"In what year could the {place.name} finally open, after works that took {number + 3} seasons?"
    question = replace(clean, id=id, text=text, answers=(str(place.year - 40),), spans=span)
    world.add(question, ((place.built,), str(place.year)), fault="answerable")


def _closed_book(world: World, id: str, clean: Question, place: Place, number: int) -> None:
    """Something that the reader knows by heart."""
    text = f"Which person led the works at the famous {place.name} of {place.year}?"
    question = replace(
        clean, id=id, text=text, answers=(place.builder,), spans=(SourceSpan(place.passage, place.built),)
    )
    world.add(question, ((), place.builder), fault="closed-book")


def _unanswerable(world: World, id: str, clean: Question, place: Place, number: int) -> None:
    """Declared unanswerable, and answered by a passage that retrieval finds."""
    text = f"How many metres does the tower of the {place.name} reach?"
    question = Question(id, text, (), (), (), answerable=False)
    world.add(question, ((place.measured,), f"{place.height} metres"), fault="unanswerable")


def _round_trip(world: World, id: str, clean: Question, place: Place, number: int) -> None:
    """The label names a passage about another place."""
    name = clean.passages[0].removeprefix("p-").replace("-", " ")
    other = world.questions[number + 1]
    text = f"After how many years of labour could people enter the {name} for the first time?"
    question = replace(clean, id=id, text=text, answers=(str(number),), passages=other.passages, spans=other.spans)
    world.add(question, ((place.built,), str(number)), fault="round-trip")


def _plant_pairs(world: World, every: list[Place], draw: random.Random) -> None:
    """Questions on two passages, clean ones that need both and faulty ones that one passage answers; and questions
    that truly can't be answered."""
    for number in range(2 * PLANTED["each-passage"]):
        one, other = every[-1 - 2 * number], every[-2 - 2 * number]
        spans = (SourceSpan(one.passage, one.measured), SourceSpan(other.passage, other.measured))
        passages = (one.passage, other.passage)
        faulty = number < PLANTED["each-passage"]
        way: tuple[tuple[str, ...], str]
        if faulty:
            text = f"How far up does the {one.name} reach above the ground, apart from the {other.name}?"
            way = ((one.measured,), f"{one.height} metres")
            answer = f"{one.height} metres"
        else:
            text = f"Which is taller, the {one.name} or the {other.name}?"
            answer = (one if one.height >= other.height else other).name
            way = ((one.measured, other.measured), answer)
        id = f"{'each-passage' if faulty else 'clean-pair'}-{number}"
        question = Question(id, text, (answer,), passages, spans, True)
        world.add(question, way, fault="each-passage" if faulty else "")
    for number in range(30):
        text = f"What colour are the doors of the {every[number].name}?"
        world.add(Question(f"clean-open-{number}", text, (), (), (), answerable=False))


Planter = Callable[[World, str, Question, Place, int], None]
PLANTERS: dict[str, Planter] = {
    "verbatim": _verbatim,
    "stated": _stated,
    "self-contained": _self_contained,
    "language": _language,
    "copied": _copied,
    "duplicate": _duplicate,
    "answerable": _answerable,
    "closed-book": _closed_book,
    "unanswerable": _unanswerable,
    "round-trip": _round_trip,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--held-out", action="store_true")
    parser.add_argument("--encoder", default="embedded")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    world = build_held_out_world() if given.held_out else build_world(given.seed)
    result = run_world(world, given.encoder)
    clean = sum(question.id not in world.faults for question in world.questions)
    print(f"{len(world.questions)} questions, {clean} of them clean\n")
    print(quality_table(measure(world, result)))
    if given.held_out:
        print("\nThe second half of the documents:\n")
        print(quality_table(measure(world, result, untouched_questions(world))))


if __name__ == "__main__":
    main()
