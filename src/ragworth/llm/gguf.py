"""``gguf:FILE``: a GGUF file of the Llama family on this machine, read as an ONNX graph.

For models of other kinds, there is llama.cpp's server, which ``openai:`` calls.
"""

from __future__ import annotations

from pathlib import Path

from ragworth.core.errors import ModelError
from ragworth.llm.contract import Card
from ragworth.llm.local.engine import LOCAL_ABILITIES, Engine
from ragworth.llm.local.onnx_model import QUANTISATION, load_onnx
from ragworth.llm.local.runtime import LoadedModel
from ragworth.llm.model_files import fingerprint
from ragworth.llm.truncation import parse_on_long


def open_model(rest: str, *, on_long: str = "error", context_length: int = 4096, threads: int = 0) -> Engine:
    """Open a GGUF file.

    Parameters
    ----------
    on_long: what to do if a prompt is too long: ``error``, or ``cut`` its passages.
    context_length: maximum tokens to read.
    threads: cores to use; 0 uses all available ones.
    """
    path = Path(rest).expanduser()
    if not path.is_file():
        raise ModelError("no such file", file=rest, expected="gguf:FILE")
    with path.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise ModelError("this is not a GGUF file", file=rest, expected="a file that begins with GGUF")
    if context_length < 1:
        raise ModelError(f"context_length is {context_length}", expected="at least 1")

    def load() -> LoadedModel:
        loaded = load_onnx(path, threads=threads)
        reads = getattr(loaded.runtime, "context", context_length)
        if context_length > reads:
            raise ModelError(f"the model reads {reads:,} tokens", remedy=f"context_length={reads}")
        return loaded

    card = Card(
        backend="gguf",
        name=path.name,
        revision=fingerprint(path),
        quantisation=QUANTISATION,
        abilities=LOCAL_ABILITIES,
        context_length=context_length,
        cuts=parse_on_long(on_long),
    )
    return Engine(card, load, batch=64)
