"""How well the embedded model with an adapter tells passages apart, and the temperature that calibrates it.

    python -m training.reader.calibrate mean.safetensors fenced.jsonl -o reader.safetensors

What counts in the end is the model in 8 bits on a CPU, not the one that was trained. Goes through the passages of other
sources (``training.reader.dev``) and the held-out single passages of the recipe's file, whichever the files have. The
temperature is fitted to all of them, the sources counting the same, and in each those to decline as much as the others.
The adapter is written with it.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from safetensors import safe_open
from safetensors.numpy import save_file

import ragworth
from ragworth.judging.labels import NO_RESPONSE_LABEL
from ragworth.llm import embedded
from ragworth.llm.contract import Chosen, Failure, Prompt, PromptMessage
from ragworth.llm.local.adapter import Adapter
from training.reader.examples import source
from training.reader.figures import auc, ece, temperature


class Shown(NamedTuple):
    """A prompt with a single passage, where it is from, and whether it is to be declined."""

    prompt: Prompt
    source: str
    declines: bool


def shown(path: Path) -> Iterator[Shown]:
    with path.open(encoding="utf-8") as file:
        for item in map(json.loads, file):
            if name := source(item["kind"], item["part"]):
                prompt = Prompt(tuple(PromptMessage(role, text) for role, text in item["messages"]))
                yield Shown(prompt, name, item["answer"] == NO_RESPONSE_LABEL)


def weights(some: Sequence[Shown]) -> torch.Tensor:
    """What each passage counts: sources the same, and in each of them both kinds the same."""
    groups = [(one.source, one.declines) for one in some]
    return torch.tensor([1 / groups.count(group) for group in groups], dtype=torch.float64)


def _odds(found: Chosen | Failure) -> float:
    """Log-odds of what was chosen, before any temperature; a passage that cannot be read is an error."""
    if isinstance(found, Failure):
        raise ValueError(f"a passage could not be judged: {found}")
    p = min(max(found.probabilities[0], 1e-12), 1 - 1e-12)
    return math.log(p) - math.log1p(-p)


def write_calibrated(adapter: Path, fitted: float, output: Path) -> None:
    """The same adapter with the temperature in its metadata."""
    with safe_open(adapter, framework="np") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (it is no dict)
        about = (file.metadata() or {}) | {"temperature": f"{fitted:.4f}"}
    save_file(tensors, output, metadata=about)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Calibrate an adapter with the embedded model.")
    parser.add_argument("adapter", type=Path)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("-o", "--output", type=Path, help="the adapter with this temperature")
    given = parser.parse_args(arguments)
    embedded.SHIPPED[""] = embedded.SHIPPED[""]._replace(adapter=Adapter(given.adapter))
    some = [one for path in given.files for one in shown(path)]
    asked = [ragworth.Choose(one.prompt, (NO_RESPONSE_LABEL,), "first-token") for one in some]
    odds = torch.tensor([_odds(chosen) for chosen in embedded.open_model("").choose(asked)], dtype=torch.float64)
    declines = torch.tensor([one.declines for one in some])
    found = temperature(odds, declines, weights(some))
    for name in dict.fromkeys(one.source for one in some):
        mine = torch.tensor([one.source == name for one in some])
        fitted = torch.sigmoid(odds[mine] / found)
        answered = (odds[mine & ~declines] < 0).double().mean()
        print(
            f"{name}: AUC {auc(odds[mine], declines[mine]):.4f}, ECE {ece(fitted, declines[mine]):.4f}, "
            f"{answered:.0%} of those with the answer answered, {int(mine.sum())} passages"
        )
    print(f"temperature {found:.4f}")
    if given.output:
        write_calibrated(given.adapter, found, given.output)


if __name__ == "__main__":
    main()
