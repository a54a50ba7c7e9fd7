"""Pipelines: sequences of steps with a written form.

``a >> b`` passes the results of a to b, ``a % k`` keeps the first k. As in Python, ``%`` binds tighter than ``>>``,
which makes no difference: both ``a >> b % 10`` and ``(a >> b) % 10`` cut the results of b. Of two cuts in a row, the
smaller one counts. Equal pipelines have equal written forms and hashes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, Union

from ragworth.core.errors import InputError, quote_short
from ragworth.retrieval.contract import Step
from ragworth.retrieval.steps.reorder import Top

StepLike: TypeAlias = Union["Pipeline", Step, str, Sequence["StepLike"]]
"""A pipeline, a step, a written form, or a list of them, which are joined by ``>>``."""

MAX_STEPS = 100
"""Steps of a pipeline, which run within each other."""


@dataclass(frozen=True)
class Pipeline:
    """Steps in order, at least one.

    It may be a part to be put after another, so the first step need not be able to come first; `complete` checks that.
    """

    steps: tuple[Step, ...]

    def __post_init__(self) -> None:
        if not self.steps:
            raise InputError("the pipeline has no steps", expected="at least one, such as bm25")
        if len(self.steps) > MAX_STEPS:
            raise InputError(f"the pipeline has more than {MAX_STEPS} steps", expected=f"at most {MAX_STEPS}")
        for before, step in zip(self.steps, self.steps[1:], strict=False):
            if before.rewrites and (step.place == "behind" or step.rewrites):
                raise InputError(
                    f"{step} can't follow {before.kind}: nothing is retrieved before it",
                    expected=f"a step that retrieves after {before.kind}, such as {before} >> bm25",
                )
            if step.place == "first" and not before.rewrites:
                raise InputError(
                    f"{step.kind} can't follow {before.kind}: it retrieves on its own",
                    expected=f"{step.kind} at the beginning",
                )
        object.__setattr__(self, "steps", _merge_cuts(self.steps))

    @classmethod
    def of(cls, system: StepLike | Any) -> Pipeline:
        """Build a pipeline from any of its forms."""
        if isinstance(system, Pipeline):
            return system
        if isinstance(system, Step):
            return cls((system,))
        if isinstance(system, str):
            from ragworth.retrieval.parsing import parse

            return parse(system)
        if isinstance(system, Sequence):
            return cls(tuple(step for part in system for step in cls.of(part).steps))
        from ragworth.interop.retrievers import is_retriever

        if is_retriever(system):
            from ragworth.retrieval.steps.external import Called

            return cls((Called(system),))
        raise InputError(
            f"{quote_short(system)} is not a pipeline",
            expected='a step, a written form such as "bm25 >> reversed % 10", or a retriever: a function, an object',
        )

    @property
    def all_steps(self) -> tuple[Step, ...]:
        """Its steps and those of inner pipelines."""
        waiting, steps = [self], []
        while waiting:
            for step in waiting.pop(0).steps:
                steps.append(step)
                waiting += step.all_pipelines
        return tuple(steps)

    @property
    def is_control(self) -> bool:
        """Whether it is for comparison only: some step is a control."""
        return any(step.control for step in self.all_steps)

    @property
    def asks_model(self) -> bool:
        """Whether some step calls a language model."""
        return any(step.asks_model for step in self.all_steps)

    def with_depth(self, k: int) -> Pipeline:
        """The same ranking, shown at least k deep: a cut at the end that keeps fewer is moved."""
        last = self.steps[-1]
        return Pipeline((*self.steps[:-1], Top(k))) if isinstance(last, Top) and last.k < k else self

    def complete(self) -> Pipeline:
        """Return the pipeline if it can run, i.e. begins with a step that retrieves."""
        if self.steps[0].place == "behind":
            sign = " " if isinstance(self.steps[0], Top) else " >> "
            raise InputError(
                f"{self.steps[0]} can't be first in {str(self)!r}: it works on what was retrieved before",
                expected=f"something that retrieves before it, such as bm25{sign}{self}",
            )
        if self.steps[-1].rewrites:
            raise InputError(
                f"{str(self)!r} retrieves nothing", expected=f"a step that retrieves after it, such as {self} >> bm25"
            )
        return self

    @property
    def digest(self) -> str:
        """Sixteen hexadecimal digits that identify the written form."""
        return hashlib.sha256(str(self).encode("utf-8", "surrogatepass")).hexdigest()[:16]

    def __rshift__(self, other: StepLike) -> Pipeline:
        return Pipeline((*self.steps, *Pipeline.of(other).steps))

    def __mod__(self, k: int) -> Pipeline:
        return Pipeline((*self.steps, Top(k)))

    def __str__(self) -> str:
        first, *rest = self.steps
        return str(first) + "".join(f" {step}" if isinstance(step, Top) else f" >> {step}" for step in rest)


def _merge_cuts(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """Merge consecutive cuts."""
    merged: list[Step] = []
    for step in steps:
        if merged and isinstance(step, Top) and isinstance(last := merged[-1], Top):
            merged[-1] = min(step, last, key=lambda each: each.k)
        else:
            merged.append(step)
    return tuple(merged)
