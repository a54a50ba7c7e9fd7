"""Teach the embedded model to read and to decline: a low-rank adapter, trained on the examples of the recipe.

    python -m training.reader.train examples.jsonl --dev dev.jsonl --weights SmolLM2-135M-Instruct.Q4_1.gguf \\
        -o one.safetensors

Only what the reader says is learned, not the prompts. Some minutes on one GPU; on a CPU, ``--device cpu --steps 3`` is
enough to see that everything works. Prints what held-out questions and passages of other sources (``--dev``) say after
each pass. What comes of it is too sure of itself: ``training.reader.mix`` weakens it, or the mean of several.
"""

from __future__ import annotations

import argparse
import math
import random
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch

from ragworth.llm.local.prompt_encoding import PromptEncoder
from training.reader.examples import DEV, HELD_OUT, TRAIN, source
from training.reader.figures import auc, surprise, temperature
from training.reader.model import adapt, read, rounded, save
from training.reader.rows import Row, batches, rows

WARM_UP = 0.05
"""Share of the steps in which the rate rises; it then falls along a cosine to a tenth."""


def losses(model: Any, batch: Sequence[Row], device: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-probability of each token that is to be said, and where these are: (rows × longest)."""
    longest = max(len(row.ids) for row in batch)
    ids = torch.tensor([row.ids + [0] * (longest - len(row.ids)) for row in batch], device=device)
    place = torch.arange(longest, device=device)
    start = torch.tensor([row.start for row in batch], device=device)[:, None]
    size = torch.tensor([len(row.ids) for row in batch], device=device)[:, None]
    wanted = ((place >= start) & (place < size))[:, 1:]
    hidden = model.model(input_ids=ids, use_cache=False).last_hidden_state[:, :-1]
    logits = model.lm_head(hidden[wanted]).float()
    logs = torch.zeros(wanted.shape, device=device)
    logs[wanted] = torch.log_softmax(logits, -1).gather(-1, ids[:, 1:][wanted][:, None])[:, 0]
    return logs, wanted


def declining(model: Any, some: Sequence[Row], label: int, tokens: int, device: str) -> torch.Tensor:
    """Log-odds that the first thing said begins the label of declining, for each row."""
    found: dict[int, float] = {}
    for batch in batches(some, tokens, None):
        longest = max(row.start for row in batch)
        ids = torch.tensor([row.ids[: row.start] + [0] * (longest - row.start) for row in batch], device=device)
        with torch.no_grad(), autocast(device):
            hidden = model.model(input_ids=ids, use_cache=False).last_hidden_state
            last = hidden[torch.arange(len(batch)), torch.tensor([row.start - 1 for row in batch], device=device)]
            logs = torch.log_softmax(model.lm_head(last).float(), -1)[:, label].double()
        odds = logs - torch.log1p(-torch.exp(logs).clamp(max=1 - 1e-12))
        found.update((id(row), value) for row, value in zip(batch, odds.tolist(), strict=True))
    return torch.tensor([found[id(row)] for row in some], dtype=torch.float64)


def autocast(device: str) -> Any:
    return torch.autocast(device, dtype=torch.bfloat16, enabled=device == "cuda")


class Held(NamedTuple):
    """Single passages that nothing is learned from, which of them are to decline, and the token that begins with."""

    name: str
    rows: list[Row]
    declines: torch.Tensor
    label: int

    @classmethod
    def of(cls, name: str, some: list[Row], label: int) -> Held:
        return cls(name, some, torch.tensor([row.declines for row in some]), label)

    def odds(self, model: Any, given: argparse.Namespace) -> torch.Tensor:
        return declining(model, self.rows, self.label, given.tokens, given.device)

    def told(self, odds: torch.Tensor) -> str:
        """What these log-odds come to, in one line: AUC, surprise after calibration, how many are answered."""
        over = temperature(odds, self.declines)
        parts = [f"{self.name}: AUC {auc(odds, self.declines):.4f}"]
        parts.append(f"surprise {surprise(odds, self.declines, over):.4f}")
        for kind in dict.fromkeys(row.kind for row in self.rows):
            mine = torch.tensor([row.kind == kind for row in self.rows])
            parts.append(f"{kind} {(odds[mine] < 0).double().mean():.0%}")
        return ", ".join(parts)


def look(model: Any, held: Sequence[Held], given: argparse.Namespace, said: str) -> None:
    """Say how well each of the sets is told apart; of each kind, how many are more likely answered than declined."""
    model.eval()
    for one in held:
        print(f"{said}: {one.told(one.odds(model, given))}", flush=True)


def sets(given: argparse.Namespace, writer: PromptEncoder, label: int) -> list[Held]:
    """Held-out passages for questions that people asked, written ones, and those of each other source."""
    found: dict[str, list[Row]] = {}
    for part, path in ((HELD_OUT, given.examples), *([(DEV, given.dev)] if given.dev else [])):
        for row in rows(path, writer, part, given.longest):
            if name := source(row.kind, part):
                found.setdefault(name, []).append(row)
    return [Held.of(name, some, label) for name, some in found.items()]


def fit(
    model: Any,
    learning: list[torch.Tensor],
    order: Sequence[list[Row]],
    total: int,
    given: argparse.Namespace,
    after: Mapping[int, Callable[[], None]],
) -> None:
    """Go through the batches, as many as there are to be steps; after some of them something is to be done."""
    optimiser = torch.optim.AdamW(learning, lr=given.rate, weight_decay=0.01, betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda n: min(1.0, n / max(1, WARM_UP * total)) * (0.55 + 0.45 * math.cos(math.pi * n / total))
    )
    begun = time.monotonic()
    model.train()
    for step, batch in enumerate(order[:total], 1):
        with autocast(given.device):
            logs, wanted = losses(model, batch, given.device)
        loss = -logs.sum() / wanted.sum()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(learning, 1.0)
        optimiser.step()
        schedule.step()
        optimiser.zero_grad(set_to_none=True)
        if step % 100 == 0:
            told = f"step {step} of {total}, loss {float(loss.detach()):.4f}, {time.monotonic() - begun:.0f} s"
            print(told, flush=True)
        if step in after:
            after[step]()
            model.train()


def learn(
    model: Any,
    learning: list[torch.Tensor],
    plan: Sequence[Sequence[list[Row]]],
    held: Sequence[Held],
    given: argparse.Namespace,
) -> None:
    """Go through all passes, or as many steps as there are to be; say how it goes after each."""
    order = [batch for part in plan for batch in part]
    total = given.steps or len(order)
    ends = [sum(map(len, plan[: number + 1])) for number in range(len(plan))]
    looks = {
        min(end, total): partial(look, model, held, given, f"pass {number}")
        for number, end in reversed(list(enumerate(ends, 1)))
    }
    fit(model, learning, order, total, given, looks)
    model.eval()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Train the adapter of the embedded reader.")
    parser.add_argument("examples", type=Path)
    parser.add_argument("--weights", type=Path, required=True)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--dev", type=Path, help="passages of other sources, from training.reader.dev")
    parser.add_argument("--fewer", type=float, default=0.0, help="share of the examples to decline that is left out")
    parser.add_argument("--rank", type=int, default=32)
    parser.add_argument("--alpha", type=float, default=64)
    parser.add_argument("--rate", type=float, default=8e-4)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--tokens", type=int, default=32768, help="of a batch")
    parser.add_argument("--longest", type=int, default=1536, help="tokens of an example")
    parser.add_argument("--steps", type=int, default=0, help="stop after so many, to try things out")
    parser.add_argument("--compile", action="store_true", help="faster on a GPU, after a minute of preparation")
    parser.add_argument("--half", action="store_true", help="keep the base in bfloat16, which is faster")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    given = parser.parse_args(arguments)
    torch.manual_seed(given.seed)
    draw = random.Random(given.seed)
    model, writer = read(given.weights, given.device)
    if given.half:
        for parameter in model.parameters():  # not the angles of rotary positions, which need single precision
            parameter.data = parameter.data.to(torch.bfloat16)
    adapters = adapt(model, given.rank, given.alpha, given.dropout)
    if given.compile:
        for layer in model.model.layers:
            layer.compile(dynamic=True)
    learning: list[torch.Tensor] = [matrix for one in adapters.values() for matrix in (one.down, one.up)]
    every = list(rows(given.examples, writer, TRAIN, given.longest))
    held = sets(given, writer, next(row.ids[row.start] for row in every if row.declines))
    mine = next((one for one in held if one.name == HELD_OUT), None)
    if mine is None:
        parser.error(f"{given.examples} has no held-out example with a single passage")
    train = [row for row in every if not (row.declines and given.fewer and draw.random() < given.fewer)]
    turns = sorted({row.turn for row in train})
    plan = [batches([row for row in train if row.turn == turn], given.tokens, draw) for turn in turns]
    print(f"{len(train)} examples, " + ", ".join(f"{len(one.rows)} of {one.name}" for one in held), flush=True)
    learn(model, learning, plan, held, given)
    tensors = rounded(adapters)
    look(model, held, given, "in 8 bits")
    found = temperature(mine.odds(model, given), mine.declines)
    about = {"temperature": f"{found:.4f}", "rank": given.rank, "alpha": f"{given.alpha:g}", "seed": given.seed}
    about |= {"fewer": f"{given.fewer:g}", "base": given.weights.name, "passes": len(plan), "rate": f"{given.rate:g}"}
    save(tensors, given.output, {name: str(value) for name, value in about.items()})


if __name__ == "__main__":
    main()
