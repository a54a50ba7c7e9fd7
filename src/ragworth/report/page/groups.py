"""Which systems are not significantly different: as letters, or as places if letters would be too many."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, pairwise
from typing import NamedTuple

MAX_LETTERED = 9
"""Letters that a person still reads; with more, a system names the places of those it doesn't differ from."""

ALONE = "≠"
"""What stands beside a system that differs from all others, where places are named."""


class SystemGroups(NamedTuple):
    """What stands beside each system, and whether that is letters."""

    of: dict[str, str]
    lettered: bool
    best: str = ""
    """The system that the others were compared with, if not every two were compared."""

    @property
    def words(self) -> str:
        """How to read it."""
        if self.best:
            return f"≈: not significantly different from {self.best}, the best; {ALONE}: significantly different"
        if self.lettered:
            return "Systems that share a letter are not significantly different"
        return f"A system is not significantly different from those at the places after ≈ ({ALONE}: differs from all)"


def group_systems(order: Sequence[str], different: set[tuple[str, str]]) -> SystemGroups:
    """Groups of systems in their order, best first; ``different`` has the pairs that differ significantly."""
    alike = {
        system: {other for other in order if other != system and not {(system, other), (other, system)} & different}
        for system in order
    }
    parts = list(islice(_largest_groups(alike, frozenset(), list(order), []), MAX_LETTERED + 1))
    if len(parts) > MAX_LETTERED:
        return SystemGroups(_places(order, alike), False)
    place = {system: i for i, system in enumerate(order)}
    parts.sort(key=lambda group: sorted(place[system] for system in group))
    letters = {system: "".join(_letter(i) for i, part in enumerate(parts) if system in part) for system in order}
    return SystemGroups(letters, True)


def group_by_best(order: Sequence[str], different: set[tuple[str, str]]) -> SystemGroups:
    """Which of many systems are not significantly different from the best, the first."""
    best = order[0] if order else ""
    return SystemGroups({each: ALONE if (best, each) in different else "≈" for each in order}, False, best)


def _largest_groups(
    alike: Mapping[str, set[str]], group: frozenset[str], candidates: list[str], excluded: list[str]
) -> Iterator[frozenset[str]]:
    """Groups of systems that are all alike and can't be extended (maximal cliques, by Bron and Kerbosch).

    There may be exponentially many: take as many as are needed.
    """
    if not candidates and not excluded:
        yield group
        return
    pivot = max([*candidates, *excluded], key=lambda system: sum(other in alike[system] for other in candidates))
    for system in [each for each in candidates if each not in alike[pivot]]:
        near = alike[system]
        yield from _largest_groups(
            alike, group | {system}, [c for c in candidates if c in near], [e for e in excluded if e in near]
        )
        candidates = [each for each in candidates if each != system]
        excluded = [*excluded, system]


def _letter(number: int) -> str:
    return chr(ord("a") + number) if number < 26 else f"({number + 1})"


def _places(order: Sequence[str], alike: Mapping[str, set[str]]) -> dict[str, str]:
    """For each system the places, from 1, of all that do not differ significantly from it; itself is among them."""
    found: dict[str, str] = {}
    for system in order:
        places = [i for i, other in enumerate(order, 1) if other == system or other in alike[system]]
        found[system] = f"≈ {_ranges(places)}" if len(places) > 1 else ALONE
    return found


def _ranges(numbers: Sequence[int]) -> str:
    """Ascending numbers with neighbours joined: 2, 5–7."""
    starts = [numbers[0], *(b for a, b in pairwise(numbers) if b > a + 1)]
    ends = [*(a for a, b in pairwise(numbers) if b > a + 1), numbers[-1]]
    return ", ".join(str(a) if a == b else f"{a}–{b}" for a, b in zip(starts, ends, strict=True))
