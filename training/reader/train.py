"""Teach the embedded model to read and to decline: a low-rank adapter, trained on the examples of the recipe.

    python -m training.reader.train examples.jsonl --weights SmolLM2-135M-Instruct.Q4_1.gguf -o one.safetensors

Only what the reader says is learned, not the prompts. Some minutes on one GPU; on a CPU, ``--device cpu --steps 3`` is
enough to see that everything works. What comes of it is too sure of itself: ``training.reader.mix`` weakens it, or the
mean of several.
"""

from __future__ import annotations

import argparse
import math
import random
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from training.reader.examples import TRAIN
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


def fit(model: Any, learning: list[torch.Tensor], order: Sequence[list[Row]], given: argparse.Namespace) -> None:
    """Go through the batches, or as many of them as there are to be steps."""
    total = given.steps or len(order)
    optimiser = torch.optim.AdamW(learning, lr=given.rate, weight_decay=0.01, betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda n: min(1.0, n / max(1, WARM_UP * total)) * (0.55 + 0.45 * math.cos(math.pi * n / total))
    )
    begun = time.monotonic()
    model.train()
    for step, batch in enumerate(order[:total], 1):
        with torch.autocast(given.device, dtype=torch.bfloat16, enabled=given.device == "cuda"):
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


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Train the adapter of the embedded reader.")
    parser.add_argument("examples", type=Path)
    parser.add_argument("--weights", type=Path, required=True)
    parser.add_argument("-o", "--output", type=Path, required=True)
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
    train = [row for row in every if not (row.declines and given.fewer and draw.random() < given.fewer)]
    turns = sorted({row.turn for row in train})
    plan = [batches([row for row in train if row.turn == turn], given.tokens, draw) for turn in turns]
    print(f"{len(train)} examples", flush=True)
    fit(model, learning, [batch for part in plan for batch in part], given)
    about = {"rank": given.rank, "alpha": f"{given.alpha:g}", "seed": given.seed, "fewer": f"{given.fewer:g}"}
    about |= {"base": given.weights.name, "passes": len(plan), "rate": f"{given.rate:g}"}
    save(rounded(adapters), given.output, {name: str(value) for name, value in about.items()})


if __name__ == "__main__":
    main()
