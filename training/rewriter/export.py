"""Write a trained adapter in the form that ships; ``training.join`` puts it into a file with the reader's.

python -m training.rewriter.export build/experiment/adapters-0/sft-human-and-canard rewriter.safetensors
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from safetensors.numpy import save_file

from ragworth.llm.local.adapter import PeftAdapter
from ragworth.llm.model_files import sha256
from training.reader.mix import mixed


def export(adapter: PeftAdapter, path: Path) -> None:
    """Pairs of thin matrices in 8 bits, and what the adapter was trained on and for."""
    pairs = adapter.pairs()
    arrays = {
        f"{name}.{end}": matrix
        for name, both in pairs.items()
        for end, matrix in zip(("up", "down"), both, strict=True)
    }
    tensors = mixed([arrays], [1.0], max(down.shape[0] for _, down in pairs.values()))
    about = {"base": adapter.about["base"]["revision"], "prompt": adapter.about["prompt"]}
    save_file(tensors, path, metadata=about | {"data": adapter.about["data"]["hash"]})


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Write a trained adapter as the file that ships.")
    parser.add_argument("adapter", type=Path, help="folder of the adapter")
    parser.add_argument("output", type=Path)
    given = parser.parse_args(arguments)
    export(PeftAdapter(given.adapter), given.output)
    print(f"{given.output}: {given.output.stat().st_size:,} bytes, SHA-256 {sha256(given.output)}")


if __name__ == "__main__":
    main()
