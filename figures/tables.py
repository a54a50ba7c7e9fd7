"""Markdown tables, as benchmarks print them and pages show them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

RULE = re.compile(r"^\|(?:\s*:?-+:?\s*\|)+$")


@dataclass(frozen=True)
class Table:
    """A table: names of columns, how each is aligned (``---``, ``---:``), and rows of cells."""

    head: tuple[str, ...]
    rule: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def __str__(self) -> str:
        return "\n".join(
            f"| {' | '.join(cells)} |".replace("|  |", "| |") for cells in (self.head, self.rule, *self.rows)
        )

    def column(self, name: str) -> list[str]:
        place = self.head.index(name)
        return [row[place] for row in self.rows]

    def cell(self, row: str, column: str) -> str:
        """What stands in a column of the row that begins so."""
        (found,) = [each for each in self.rows if each[0] == row]
        return found[self.head.index(column)]

    def only(self, *names: str) -> Table:
        """The columns of these names, in this order."""
        places = [self.head.index(name) for name in names]

        def pick(cells: Sequence[str]) -> tuple[str, ...]:
            return tuple(cells[place] for place in places)

        return Table(pick(self.head), pick(self.rule), tuple(map(pick, self.rows)))

    def where(self, keep: Callable[[dict[str, str]], bool]) -> Table:
        """The rows that are to be kept; each is given by the names of columns."""
        rows = tuple(row for row in self.rows if keep(dict(zip(self.head, row, strict=True))))
        return Table(self.head, self.rule, rows)

    def renamed(self, *head: str) -> Table:
        """The same with other names of columns."""
        assert len(head) == len(self.head), (head, self.head)
        return Table(head, self.rule, self.rows)

    def aligned(self, sides: str) -> Table:
        """The same with other sides: ``l`` or ``r`` for each column."""
        rule = tuple("---:" if side == "r" else "---" for side in sides)
        return Table(self.head, rule, self.rows)

    def numbers(self) -> Iterator[tuple[str, str, str]]:
        """(row, column, cell) of all cells behind the first."""
        for row in self.rows:
            for name, cell in zip(self.head[1:], row[1:], strict=True):
                yield row[0], name, cell


def table(head: Iterable[str], rows: Iterable[Iterable[object]], sides: str) -> Table:
    """A table from what stands in it; ``sides`` has ``l`` or ``r`` for each column."""
    made = Table(tuple(head), (), tuple(tuple(str(cell) for cell in row) for row in rows))
    return made.aligned(sides)


def tables(text: str) -> list[Table]:
    """All Markdown tables of a text."""
    found = []
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if RULE.match(line.strip()) and number:
            rows = []
            for row in lines[number + 1 :]:
                if row.startswith("<!--"):  # a note among the rows
                    continue
                if not row.strip().startswith("|"):
                    break
                rows.append(_cells(row))
            found.append(Table(_cells(lines[number - 1]), _cells(line), tuple(rows)))
    return found


def _cells(line: str) -> tuple[str, ...]:
    inner = line.strip().removeprefix("|").removesuffix("|")
    return tuple(cell.strip() for cell in re.split(r"(?<!\\)\|", inner))
