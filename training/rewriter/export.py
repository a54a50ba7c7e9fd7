"""Write a trained adapter as the file that ships.

    python -m training.rewriter.export build/experiment/adapters-0/sft-human-and-canard \\
        src/ragworth/llm/adapters/rewriter.safetensors
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from safetensors.numpy import save_file

from ragworth.llm.fingerprint import sha256
from ragworth.llm.local.peft_adapter import PeftAdapter


def export(adapter: PeftAdapter, path: Path) -> None:
    """Pairs of thin matrices in 16 bits, and what the adapter was trained on and for."""
    tensors: dict[str, npt.NDArray[np.float16]] = {}
    for name, (up, down) in adapter.pairs().items():
        tensors |= {f"{name}.up": up.astype(np.float16), f"{name}.down": down.astype(np.float16)}
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
