"""Settings of training, with the published ones as defaults."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from ragworth.core.errors import InputError


@dataclass(frozen=True)
class TrainingSettings:
    """How a rewriter is trained.

    Attributes
    ----------
    sft_rates, dpo_rates: learning rates to try; the one with the smallest loss on held-out conversations is taken.
    epochs: passes over the data; of each rate, the epoch with the smallest held-out loss is taken.
    beta: how closely DPO stays to the model that it starts from.
    rank, alpha: of the LoRA adapter, which changes all linear layers.
    batch: examples of a step.
    micro_batch: examples read at a time; the gradients of a step are summed over them.
    max_tokens: longest prompt and rewrite together; longer examples are left out and counted.
    held_out: share of the conversations to choose rates and epochs by.
    history: characters of the history in a prompt, as in `ragworth.judging.rewriter`.
    save_steps: steps between two checkpoints.
    """

    sft_rates: tuple[float, ...] = (2e-5,)
    dpo_rates: tuple[float, ...] = (5e-7, 5e-6, 5e-5)
    epochs: int = 3
    beta: float = 0.1
    rank: int = 16
    alpha: int = 32
    batch: int = 16
    micro_batch: int = 8
    max_tokens: int = 2048
    held_out: float = 0.1
    history: int = 6000
    save_steps: int = 50
    seed: int = 0

    def __post_init__(self) -> None:
        rates = (*self.sft_rates, *self.dpo_rates)
        counts = ("epochs", "rank", "alpha", "batch", "micro_batch", "max_tokens", "save_steps")
        problems = [f"{name} is {getattr(self, name)}" for name in counts if getattr(self, name) < 1]
        problems += [f"a learning rate is {rate}" for rate in rates if not (math.isfinite(rate) and rate > 0)]
        problems += [] if math.isfinite(self.beta) and self.beta > 0 else [f"beta is {self.beta}"]
        if not self.sft_rates or not self.dpo_rates:
            problems.append("there is no learning rate")
        if min(self.micro_batch, self.batch) > 0 and self.batch % min(self.micro_batch, self.batch):
            problems.append(f"batch is {self.batch}, which is no multiple of micro_batch, {self.micro_batch}")
        if not self.held_out and max(len(self.sft_rates), len(self.dpo_rates)) > 1:
            problems.append("there are several learning rates, and no held-out conversations to choose one by")
        if problems:
            raise InputError(problems[0], more=tuple(problems[1:]), expected="positive numbers")

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)
