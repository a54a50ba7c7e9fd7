"""A local model in memory."""

from __future__ import annotations

from dataclasses import dataclass

from ragworth.llm.local.batches import BatchBudget
from ragworth.llm.local.prompt_encoding import PromptEncoder
from ragworth.llm.local.runtime import GeneratingRuntime, Runtime


@dataclass(frozen=True)
class LoadedModel:
    """A model in memory, and the size of its batches."""

    runtime: Runtime | GeneratingRuntime
    writer: PromptEncoder
    budget: BatchBudget

    def close(self) -> None:
        """Stop an engine that runs in processes of its own."""
        if isinstance(self.runtime, GeneratingRuntime):
            self.runtime.close()
