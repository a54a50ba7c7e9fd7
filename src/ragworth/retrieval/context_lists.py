"""Contexts as lists of passages, and back."""

from __future__ import annotations

from ragworth.data import Contexts
from ragworth.retrieval.contract import unscored_contexts

ContextLists = dict[str, dict[str, list[str]]]
"""By system and query, the passages in the order shown."""


def lists_by_system(contexts: Contexts) -> ContextLists:
    """What each system shows for each query, in its order."""
    found: ContextLists = {system: {} for system in contexts.systems}
    rows = contexts.frame.sort("rank", maintain_order=True).select("system", "query", "passage")
    for system, query, passage in rows.iter_rows():
        found[system].setdefault(query, []).append(passage)
    return found


def contexts_from_lists(contexts: ContextLists) -> Contexts:
    """Contexts as a table."""
    tables = []
    for system, rows in contexts.items():
        table = unscored_contexts(rows.items()).renamed(system)
        table.empty = frozenset((system, query) for query, shown in rows.items() if not shown)
        tables.append(table)
    return Contexts.concat(tables)
