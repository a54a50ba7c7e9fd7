"""Put the adapters that ship into one file.

    python -m training.join reader=reader.safetensors rewriter=rewriter.safetensors \\
        -o src/ragworth/llm/adapters/embedded.safetensors
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from safetensors import safe_open
from safetensors.numpy import save_file

from ragworth.llm.model_files import sha256


def join(parts: Mapping[str, Path], output: Path) -> None:
    """Names and metadata of each adapter begin with the name of its part and a slash; numbers stay as they are."""
    tensors: dict[str, Any] = {}
    about: dict[str, str] = {}
    for part, path in parts.items():
        with safe_open(path, framework="np") as file:
            tensors |= {f"{part}/{name}": file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (it is no dict)
            about |= {f"{part}/{name}": value for name, value in (file.metadata() or {}).items()}
    save_file(tensors, output, metadata=about)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Put several adapters into one file.")
    parser.add_argument("parts", nargs="+", help="NAME=FILE")
    parser.add_argument("-o", "--output", type=Path, required=True)
    given = parser.parse_args(arguments)
    if wrong := [part for part in given.parts if not all(part.partition("="))]:
        parser.error(f"{wrong[0]!r} is not NAME=FILE")
    join({name: Path(path) for name, _, path in (part.partition("=") for part in given.parts)}, given.output)
    print(f"{given.output}: {given.output.stat().st_size:,} bytes, SHA-256 {sha256(given.output)}")


if __name__ == "__main__":
    main()
