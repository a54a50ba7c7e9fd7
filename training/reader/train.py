"""Teach the embedded model to read and to decline: a low-rank adapter, trained on the examples of the recipe.

    python -m training.reader.train examples.jsonl --weights SmolLM2-135M-Instruct.Q4_1.gguf -o reader.safetensors

Only what the reader says is learned, not the prompts. Some minutes on one GPU; on a CPU, ``--device cpu --steps 3`` is
enough to see that everything works. Prints what the held-out questions say after each pass, and in the end the
temperature that calibrates the probability of declining on them.
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

from training.reader.figures import auc, ece, surprise, temperature
from training.reader.model import adapt, read, rounded, save
from training.reader.rows import MADE, Row, batches, rows

STRENGTHS = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5)
"""How strong the adapter may be in the end."""

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
    """Held-out examples of single passages for questions that people asked, which of them are to decline, and the token
    that declining begins with.
    """

    rows: list[Row]
    declines: torch.Tensor
    label: int

    def odds(self, model: Any, given: argparse.Namespace) -> torch.Tensor:
        return declining(model, self.rows, self.label, given.tokens, given.device)

    def surprise(self, odds: torch.Tensor) -> float:
        """How surprising what was to be said is, after calibration."""
        return surprise(odds, self.declines, temperature(odds, self.declines))

    def told(self, odds: torch.Tensor) -> str:
        """What these log-odds come to, in one line: AUC, ECE, and the mean probability for each kind."""
        p = torch.sigmoid(odds)
        parts = [f"AUC {auc(odds, self.declines):.4f}", f"ECE {ece(p, self.declines):.4f}"]
        parts.append(f"surprise {self.surprise(odds):.4f}")
        for kind in dict.fromkeys(row.kind for row in self.rows):
            mine = torch.tensor([row.kind == kind for row in self.rows])
            parts.append(f"{kind} {p[mine].mean():.3f}")
        return ", ".join(parts)


def fit(
    model: Any,
    learning: list[torch.Tensor],
    order: Sequence[list[Row]],
    total: int,
    given: argparse.Namespace,
    after: Mapping[int, Callable[[], None]] | None = None,
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
            print(f"step {step} of {total}, loss {float(loss.detach()):.4f}, {time.monotonic() - begun:.0f} s")
        if after is not None and step in after:
            model.eval()
            after[step]()
            model.train()


def learn(
    model: Any, learning: list[torch.Tensor], plan: Sequence[Sequence[list[Row]]], held: Held, given: argparse.Namespace
) -> None:
    """Go through all passes, or as many steps as there are to be; say how it goes after each.

    What is kept is the pass after which the held-out examples surprise least.
    """
    order = [batch for part in plan for batch in part]
    total = given.steps or len(order)
    kept: dict[float, list[torch.Tensor]] = {}

    def look(number: int) -> None:
        odds = held.odds(model, given)
        print(f"pass {number}: {held.told(odds)}", flush=True)
        kept[held.surprise(odds)] = [matrix.detach().clone() for matrix in learning]

    ends = [sum(map(len, plan[: number + 1])) for number in range(len(plan))]
    looks = {min(end, total): partial(look, number) for number, end in reversed(list(enumerate(ends, 1)))}
    fit(model, learning, order, total, given, looks)
    model.eval()
    with torch.no_grad():
        for matrix, best in zip(learning, kept[min(kept)], strict=True):
            matrix.copy_(best)


def strongest(model: Any, learning: list[torch.Tensor], held: Held, given: argparse.Namespace) -> float:
    """Weaken the adapter by the factor with which held-out examples surprise least.

    What was learned by heart on the way weakens first: between the base and the trained model lies a better one.
    """
    whole = [matrix.detach().clone() for matrix in learning]

    def surprise_at(strength: float) -> float:
        with torch.no_grad():
            for matrix, full in zip(learning, whole, strict=True):
                matrix.copy_(full * math.sqrt(strength))  # both thin matrices: their product by the strength
        return held.surprise(held.odds(model, given))

    found = {strength: surprise_at(strength) for strength in STRENGTHS}
    print("surprise by strength: " + ", ".join(f"{strength:g} {value:.4f}" for strength, value in found.items()))
    best = min(found, key=lambda strength: found[strength])
    surprise_at(best)
    return best


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Train the adapter of the embedded reader.")
    parser.add_argument("examples", type=Path)
    parser.add_argument("--weights", type=Path, required=True)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--rank", type=int, default=32)
    parser.add_argument("--alpha", type=float, default=64)
    parser.add_argument("--rate", type=float, default=8e-4)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--tokens", type=int, default=32768, help="of a batch")
    parser.add_argument("--longest", type=int, default=1536, help="tokens of an example")
    parser.add_argument("--steps", type=int, default=0, help="stop after so many, to try things out")
    parser.add_argument("--compile", action="store_true", help="faster on a GPU, after a minute of preparation")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    given = parser.parse_args(arguments)
    torch.manual_seed(given.seed)
    draw = random.Random(given.seed)
    model, writer = read(given.weights, given.device)
    adapters = adapt(model, given.rank, given.alpha, given.dropout)
    if given.compile:
        for layer in model.model.layers:
            layer.compile(dynamic=True)
    learning: list[torch.Tensor] = [matrix for one in adapters.values() for matrix in (one.down, one.up)]
    train = list(rows(given.examples, writer, "train", given.longest))
    single = [
        row for row in rows(given.examples, writer, "held-out", given.longest) if row.single and row.kind not in MADE
    ]
    label = next(row.ids[row.start] for row in train if row.declines)
    held = Held(single, torch.tensor([row.declines for row in single]), label)
    turns = sorted({row.turn for row in train})
    plan = [batches([row for row in train if row.turn == turn], given.tokens, draw) for turn in turns]
    print(f"{len(train)} examples, {len(single)} held out, {sum(p.numel() for p in learning):,} numbers to learn")
    learn(model, learning, plan, held, given)
    strength = strongest(model, learning, held, given)
    tensors = rounded(adapters)
    odds = held.odds(model, given)
    print(f"strength {strength:g}, in 8 bits: {held.told(odds)}")
    found = temperature(odds, held.declines)
    print(f"temperature {found:.3f}: ECE {ece(torch.sigmoid(odds / found), held.declines):.4f}")
    about = {"temperature": f"{found:.4f}", "rank": given.rank, "alpha": f"{given.alpha:g}", "seed": given.seed}
    about |= {"strength": f"{strength:g}", "base": given.weights.name, "passes": len(plan), "rate": f"{given.rate:g}"}
    save(tensors, given.output, {name: str(value) for name, value in about.items()})


if __name__ == "__main__":
    main()
