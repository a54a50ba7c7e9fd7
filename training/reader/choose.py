"""All candidates for the next reader, on the passages to choose by.

    python -m training.reader.choose one.safetensors two.safetensors three.safetensors --shipped reader.safetensors \\
        --weights SmolLM2-135M-Instruct.Q4_1.gguf --dev plain.npz fenced.npz -o candidates

README.md says which candidates there are and what decides. This command measures them in PyTorch, in seconds each on a
GPU, and writes their adapters; ``calibrate`` then measures the best ones as they would ship.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from safetensors.numpy import save_file

from ragworth.llm.local.adapter import Adapter
from ragworth.llm.local.safetensors_file import read_safetensors
from training.reader.examples import DEV, source
from training.reader.figures import auc, ece, temperature
from training.reader.mix import mixed
from training.reader.model import read
from training.reader.rows import Row, rows
from training.reader.train import declining

WEAKENED = (0.7, 0.8, 0.9, 1.0)
ALONE = 0.8


class Candidate(NamedTuple):
    """A name, and what each adapter is multiplied by."""

    name: str
    shares: tuple[float, ...]


def candidates(runs: Sequence[str]) -> Iterator[Candidate]:
    """Shares of the shipped adapter, then of each run: what ships, means with and without it, and each run alone."""
    n = len(runs)
    yield Candidate("shipped", (1.0, *[0.0] * n))
    for total in WEAKENED:
        yield Candidate(f"mean-{total}", (0.0, *[total / n] * n))
        yield Candidate(f"mean-with-shipped-{total}", (total / 3, *[total * 2 / 3 / n] * n))
    for number, run in enumerate(runs):
        yield Candidate(f"{run}-{ALONE}", (0.0, *[ALONE * (place == number) for place in range(n)]))


def write(one: Candidate, adapters: Sequence[Path], rank: int, path: Path) -> None:
    """Make the adapter of a candidate; the first of ``adapters`` is the shipped one, which stays as it is alone."""
    used = [(file, share) for file, share in zip(adapters, one.shares, strict=True) if share]
    found = [read_safetensors(file) for file, _ in used]
    shares = [share for _, share in used]
    if one.name == "shipped":
        path.write_bytes(used[0][0].read_bytes())
        return
    about = {"rank": str(rank), "base": found[-1].about["base"], "shares": " ".join(f"{share:g}" for share in shares)}
    save_file(mixed([each.arrays for each in found], shares, rank), path, metadata=about)


class Passages(NamedTuple):
    """Passages to choose by: their tokens, where each is from, and which are to be declined."""

    name: str
    rows: list[Row]
    sources: list[str]
    declines: torch.Tensor

    @classmethod
    def read(cls, path: Path, writer: Any) -> Passages:
        some = list(rows(path, writer, DEV, 8192))
        return cls(path.stem, some, [source(r.kind, DEV) or "" for r in some], torch.tensor([r.declines for r in some]))


class Measured(NamedTuple):
    """AUC by source, and ECE by source after the temperature that fits all sources."""

    aucs: dict[str, float]
    eces: dict[str, float]


def measured(model: Any, some: Passages, tokens: int, device: str) -> Measured:
    label = next(row.ids[row.start] for row in some.rows if row.declines)
    odds = declining(model, some.rows, label, tokens, device)
    parts = {name: torch.tensor([one == name for one in some.sources]) for name in dict.fromkeys(some.sources)}
    weights = torch.zeros(len(some.rows), dtype=torch.float64)
    for mine in parts.values():
        for kind in (mine & some.declines, mine & ~some.declines):
            weights[kind] = 1 / max(1, int(kind.sum()))
    fitted = torch.sigmoid(odds / temperature(odds, some.declines, weights))
    return Measured(
        {name: auc(odds[mine], some.declines[mine]) for name, mine in parts.items()},
        {name: ece(fitted[mine], some.declines[mine]) for name, mine in parts.items()},
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Measure all candidates for the next reader.")
    parser.add_argument("runs", type=Path, nargs="+", help="adapters by training.reader.train")
    parser.add_argument("--shipped", type=Path, required=True)
    parser.add_argument("--weights", type=Path, required=True)
    parser.add_argument("--dev", type=Path, nargs="+", required=True, help="from training.reader.dev or .rows")
    parser.add_argument("--rank", type=int, default=24)
    parser.add_argument("--tokens", type=int, default=32768, help="of a batch")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder for the candidates' adapters")
    given = parser.parse_args(arguments)
    model, writer = read(given.weights, given.device)
    model.eval()
    base = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    every = [Passages.read(path, writer) for path in given.dev]
    given.output.mkdir(parents=True, exist_ok=True)
    print("| candidate | passages | mean AUC | mean ECE | AUC by source |\n| --- | --- | ---: | ---: | --- |")
    for one in candidates([run.stem for run in given.runs]):
        path = given.output / f"{one.name}.safetensors"
        write(one, [given.shipped, *given.runs], given.rank, path)
        for name, delta in Adapter(path).deltas().items():
            changed = base[name] + torch.from_numpy(np.array(delta)).to(base[name])
            model.get_parameter(name).data.copy_(changed)
        for some in every:
            found = measured(model, some, given.tokens, given.device)
            by_source = ", ".join(f"{name} {value:.4f}" for name, value in found.aucs.items())
            means = f"{np.mean(list(found.aucs.values())):.4f} | {np.mean(list(found.eces.values())):.4f}"
            print(f"| {one.name} | {some.name} | {means} | {by_source} |", flush=True)


if __name__ == "__main__":
    main()
