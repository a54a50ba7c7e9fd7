"""Tables about the invented world: with the cell that is asked for, or without its row, its column or its value."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ragworth.judging.labels import NO_RESPONSE_LABEL
from training.reader.examples import TABLE, TABLE_WITHOUT, Example
from training.reader.invented import KINDS, World
from training.reader.texts import styled

Rows = Sequence[Sequence[str]]
"""The head and the rows of a table."""
EMPTY = ("–", "n/a", "", "not known", "?")


def examples(number: int, seed: int) -> Iterator[Example]:
    """For each of so many tables: the whole of it, and one that lacks what is asked."""
    world = World(seed)
    for _ in range(number):
        yield from _examples(world)


def _examples(world: World) -> Iterator[Example]:
    draw = world.draw
    kind = draw.choice(list(KINDS))
    names = draw.sample(list(KINDS[kind]), draw.randint(2, 4))
    entities = list(dict.fromkeys(world.entity(kind) for _ in range(draw.randint(3, 7))))
    values = {entity: {name: world.value(KINDS[kind][name].value) for name in names} for entity in entities}
    entity, asked = draw.choice(entities), draw.choice(names)
    answer = values[entity][asked]
    query = draw.choice(KINDS[kind][asked].asks).format(e=entity)
    form = draw.choice(FORMS)

    def shown(entities: Sequence[str], names: Sequence[str]) -> str:
        head = [kind, *names] if draw.random() < 0.7 else [kind.capitalize(), *(name.capitalize() for name in names)]
        return form([head, *([each, *(values[each][name] for name in names)] for each in entities)])

    def example(passage: str, said: str, kind: str) -> Example:
        return Example("abstention", {"query": styled(query, draw), "passage": passage}, said, kind)

    yield example(shown(entities, names), answer, TABLE)
    lacking = draw.choice(("row", "column", "value"))
    if lacking == "value":
        values[entity][asked] = draw.choice(EMPTY)
    rows = [each for each in entities if each != entity] if lacking == "row" else entities
    columns = [name for name in names if name != asked] if lacking == "column" else names
    table = shown(rows, columns)
    if answer not in table:
        yield example(table, NO_RESPONSE_LABEL, TABLE_WITHOUT)


def _markdown(rows: Rows) -> str:
    head, *rest = ("| " + " | ".join(row) + " |" for row in rows)
    return "\n".join([head, "|" + " --- |" * len(rows[0]), *rest])


def _separated(sign: str) -> Callable[[Rows], str]:
    return lambda rows: "\n".join(sign.join(row) for row in rows)


def _records(rows: Rows) -> str:
    """A block of lines for each row, the name of the column before each value."""
    head, *rest = rows
    return "\n\n".join("\n".join(f"{name}: {value}" for name, value in zip(head, row, strict=True)) for row in rest)


def _sentences(rows: Rows) -> str:
    head, *rest = rows
    return " ".join(
        f"{row[0]} ({', '.join(f'{name} {value}' for name, value in zip(head[1:], row[1:], strict=True))})."
        for row in rest
    )


FORMS: tuple[Callable[[Rows], str], ...] = (
    _markdown,
    _separated("\t"),
    _separated(";"),
    _separated("  "),
    _records,
    _sentences,
)
