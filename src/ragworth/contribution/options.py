"""The settings of everything that splits an answer among passages."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ragworth.calls.programs import NoValue
from ragworth.contribution.design import METHODS, MOST_EXACT, Design
from ragworth.contribution.summary import LEAST
from ragworth.tasks.contract import option, prompt_option


@dataclass(frozen=True)
class ContributionOptions:
    """Settings of the annotator and of the grader."""

    method: str = option(
        "auto", "how the answer is split among passages; auto depends on their number", choices=METHODS
    )
    subsets: int = option(256, "maximum subsets of a context to ask about, if not all", low=8)
    least: float = option(LEAST, "lowest contribution, in nats, that counts", low=0)
    seed: int = option(0, "seed of random orders and subsets", low=0)
    prompt: str = prompt_option("reply")
    keep_cut: bool = option(False, "keep values of contexts that did not fit whole")

    @cached_property
    def design(self) -> Design:
        return Design(self.method, self.subsets, self.seed)

    @property
    def splits_by_shapley(self) -> bool:
        """Whether there are contributions beside those of leaving one passage out."""
        return self.method != "leave-one-out"

    @property
    def split_rounds(self) -> int:
        """How often it may ask about one context."""
        return 1 + self.subsets if self.method in ("auto", "permutations") else 1

    def check_size(self, passages: int) -> None:
        """Raise `NoValue` if a context is too large for the method."""
        if self.method == "exact" and passages > MOST_EXACT:
            words = f"{passages} passages have 2^{passages} subsets"
            raise NoValue("too-many-passages", f"{words}; exact takes {MOST_EXACT} passages at most")
