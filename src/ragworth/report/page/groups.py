"""Which systems are not significantly different: as letters, or from the best if letters would be too many."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

MAX_LETTERED = 9
"""Letters that a person still reads; with more, systems are only marked as different from the best or not."""

ALONE = "≠"
"""What stands beside a system that differs from the best, where there are no letters."""


class SystemGroups(NamedTuple):
    """What stands beside each system."""

    of: dict[str, str]
    best: str = ""
    """The system that the others are marked by, where there are no letters."""

    @property
    def words(self) -> str:
        """How to read it."""
        if self.best:
            return f"≈: not significantly different from {self.best}, the best; {ALONE}: significantly different"
        return "Systems that share a letter are not significantly different"


def group_systems(order: Sequence[str], different: set[tuple[str, str]]) -> SystemGroups:
    """Groups of systems in their order, best first; ``different`` has the pairs that differ significantly."""
    alike = {
        system: {other for other in order if other != system and not {(system, other), (other, system)} & different}
        for system in order
    }
    parts = list(islice(_largest_groups(alike, frozenset(), list(order), []), MAX_LETTERED + 1))
    if len(parts) > MAX_LETTERED:
        return group_by_best(order, different)
    place = {system: i for i, system in enumerate(order)}
    parts.sort(key=lambda group: sorted(place[system] for system in group))
    letters = {system: "".join(chr(ord("a") + i) for i, part in enumerate(parts) if system in part) for system in order}
    return SystemGroups(letters)


def group_by_best(order: Sequence[str], different: set[tuple[str, str]]) -> SystemGroups:
    """Which of many systems are not significantly different from the best, the first."""
    best = order[0] if order else ""
    apart = {system for pair in different if best in pair for system in pair} - {best}
    return SystemGroups({each: ALONE if each in apart else "≈" for each in order}, best)


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
