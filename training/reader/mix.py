"""Several adapters as one, of each a share: what each learned by heart fades, what they share stays.

    python -m training.reader.mix one.safetensors two.safetensors --shares 0.4 0.5 --rank 24 -o reader.safetensors

Shares that come to less than 1 weaken the sum, which helps: between the base and a trained model lies a better one.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors.numpy import save_file

from ragworth.llm.local.adapter import read_safetensors

Doubles = npt.NDArray[np.float64]
Tensors = dict[str, npt.NDArray[Any]]


def mixed(files: Sequence[dict[str, npt.NDArray[np.float32]]], shares: Sequence[float], rank: int) -> Tensors:
    """Thin matrices in 8 bits, whose product comes as close to the sum as so low a rank can."""
    made: Tensors = {}
    for name in sorted(key.removesuffix(".down") for key in files[0] if key.endswith(".down")):
        parts = zip(files, shares, strict=True)
        up = np.concatenate([_scaled(file, name) * share for file, share in parts], axis=1)
        down = np.concatenate([file[f"{name}.down"].astype(np.float64) for file in files])
        left, middle = np.linalg.qr(up)
        right, other = np.linalg.qr(down.T)
        rotated, sizes, turned = np.linalg.svd(middle @ other.T)
        root = np.sqrt(sizes[:rank])
        made[f"{name}.up"], column = _eight_bits(left @ rotated[:, :rank] * root, 0)
        made[f"{name}.down"], row = _eight_bits(turned[:rank] @ right.T * root[:, None], 1)
        made[f"{name}.scale"] = (column[0] * row[:, 0]).astype(np.float32)
    return made


def _scaled(file: dict[str, npt.NDArray[np.float32]], name: str) -> Doubles:
    up: Doubles = file[f"{name}.up"].astype(np.float64) * file.get(f"{name}.scale", 1.0)
    return up


def _eight_bits(matrix: Doubles, over: int) -> tuple[npt.NDArray[np.int8], Doubles]:
    """Whole numbers of at most 127, and what they are to be multiplied by."""
    scale = np.maximum(np.abs(matrix).max(axis=over, keepdims=True), 1e-12) / 127
    return np.round(matrix / scale).astype(np.int8), scale


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Make one adapter of several.")
    parser.add_argument("adapters", type=Path, nargs="+")
    parser.add_argument("--shares", type=float, nargs="+", required=True, help="what each is multiplied by")
    parser.add_argument("--rank", type=int, required=True, help="of the result")
    parser.add_argument("-o", "--output", type=Path, required=True)
    given = parser.parse_args(arguments)
    if len(given.shares) != len(given.adapters):
        parser.error(f"{len(given.adapters)} adapters and {len(given.shares)} shares")
    found = [read_safetensors(path) for path in given.adapters]
    about = {name: value for name, value in found[0].about.items() if name not in ("seed", "fewer")}
    about |= {"shares": " ".join(f"{share:g}" for share in given.shares), "rank": str(given.rank)}
    tensors = mixed([each.arrays for each in found], given.shares, given.rank)
    save_file(tensors, given.output, metadata=about)


if __name__ == "__main__":
    main()
