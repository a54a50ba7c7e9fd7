"""A local model in memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ragworth.llm.local.batches import BatchBudget
from ragworth.llm.local.prompt_encoding import PromptEncoder
from ragworth.llm.local.runtime import GeneratingRuntime, Runtime

MAX_PREFIXES = 4
"""Number of prefixes to cache."""


@dataclass(frozen=True)
class LoadedModel:
    """A model in memory, and the size of its batches."""

    runtime: Runtime | GeneratingRuntime
    writer: PromptEncoder
    budget: BatchBudget
    prefixes: dict[tuple[int, ...], Any] = field(default_factory=dict)
    """The last few prefixes that were read, with the runtime's state of each."""

    def prefix(self, ids: list[int], shared: int, first: int) -> tuple[int, Any]:
        """Return a prefix of ``ids`` that was read now or before: its length and state.

        ``shared`` is the common prefix of a batch's rows, 0 if none is to be read for them; ``first`` is how long it
        could be. A slightly shorter one read before is as good as a new one.
        """
        for known, kept in self.prefixes.items():
            if 0.75 * shared <= len(known) <= (shared or first) and tuple(ids[: len(known)]) == known:
                return len(known), kept
        if not shared:
            return 0, None
        if len(self.prefixes) >= MAX_PREFIXES:
            del self.prefixes[next(iter(self.prefixes))]
        kept = self.runtime.prefix(ids[:shared])
        self.prefixes[tuple(ids[:shared])] = kept
        return shared, kept

    def close(self) -> None:
        """Stop an engine that runs in processes of its own."""
        if isinstance(self.runtime, GeneratingRuntime):
            self.runtime.close()
