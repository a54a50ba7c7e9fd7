"""Build GGUF files into ONNX graphs once, which takes seconds, then load them from the cache folder.

A built model is a folder that is created atomically, named after everything that determines what it computes. If its
files have changed, or this machine can't compute with them, it is built again.
"""

from __future__ import annotations

import hashlib
import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ragworth.core.cache import cache_folder
from ragworth.core.errors import MissingExtraError, ModelError
from ragworth.core.files import open_folder
from ragworth.llm.local.adapter import Adapter, PeftAdapter, merge_deltas
from ragworth.llm.local.runtime import BatchBudget, LoadedModel
from ragworth.llm.model_files import fingerprint, sha256

QUANTISATION = "onnx int8 1"
"""Part of a model's identity: the number changes with what is computed."""

LAYOUT = 3
"""Incremented with every change in how a built model is stored."""

ABOUT, TOKENIZER = "about.json", "tokenizer.json"
"""Files of a built model besides its graph: its chat template and context length, with the hashes of all files, and
its tokenizer.
"""


def load_onnx(path: Path, *, threads: int = 0, adapter: Adapter | PeftAdapter | None = None) -> LoadedModel:
    """Load a GGUF file of the Llama family, building it first if necessary.

    Parameters
    ----------
    threads: cores to use; 0 uses all available ones.
    adapter: differences added to weights.
    """
    for package in ("onnxruntime", "tokenizers", "onnx", "gguf"):
        if find_spec(package) is None:
            raise MissingExtraError(package, "embedded", "reading a GGUF file")
    from tokenizers import Tokenizer

    from ragworth.llm.local.gguf_file import PromptFacts, build_encoder
    from ragworth.llm.local.onnx_runtime import MODEL, OnnxRuntime

    revision = fingerprint(path) + (f"+{adapter.digest}" if adapter is not None else "")
    name = hashlib.sha256(f"{revision} {QUANTISATION} {LAYOUT}".encode()).hexdigest()[:24]
    folder = cache_folder() / "models" / name
    about = _find_built(folder)
    if about is None:
        try:
            about = _build(path, folder, adapter)
        except OSError as error:
            raise ModelError(
                f"the model can't be saved: {folder.parent} can't be written to ({error.strerror or error})",
                remedy="set RAGWORTH_CACHE to a writable folder with 200 MB of space",
            ) from error
    runtime = OnnxRuntime(folder / MODEL, QUANTISATION, context=about["context"], threads=threads or None)
    encoder = build_encoder(Tokenizer.from_file(str(folder / TOKENIZER)), PromptFacts(*about["text"]))
    return LoadedModel(runtime, encoder, BatchBudget(8192, 64))


def _find_built(folder: Path) -> dict[str, Any] | None:
    """Read what is known of an earlier build, if it is unchanged and right for this machine."""
    from ragworth.llm.local.onnx_runtime import PROBE, has_exact_int8

    try:
        about: dict[str, Any] = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
        same = all(sha256(folder / name) == value for name, value in about["files"].items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return about if same and (not about["signed"] or has_exact_int8(folder / PROBE)) else None


def _build(path: Path, folder: Path, adapter: Adapter | PeftAdapter | None) -> dict[str, Any]:
    """Build a model in a folder that gets its name when it is complete."""
    from ragworth.llm.local.gguf_file import read_gguf
    from ragworth.llm.local.onnx_build import write_decoder, write_probe
    from ragworth.llm.local.onnx_runtime import PROBE, has_exact_int8

    model = read_gguf(path)
    weights = model.weights if adapter is None else merge_deltas(model.weights, adapter.deltas())
    with open_folder(folder) as part:
        write_probe(part)
        signed = has_exact_int8(part / PROBE)
        try:
            write_decoder(part, model.shape, weights, signed=signed)
        except ValueError as error:  # matrices of a damaged file don't match
            raise ModelError(
                f"its weights don't have the sizes that it announces: {error}",
                file=str(path),
                expected="a complete GGUF file",
            ) from error
        model.tokenizer.save(str(part / TOKENIZER))
        files = {file.name: sha256(file) for file in sorted(part.iterdir())}
        about = {"context": model.shape.context, "text": model.text, "signed": signed, "files": files}
        (part / ABOUT).write_text(json.dumps(about), encoding="utf-8")
    return about
