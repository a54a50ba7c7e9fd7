"""``gguf:FILE``: a GGUF file on this machine, read by the best reader installed.

``llama.cpp`` (extra ``llamacpp``) reads every architecture; ``onnx`` (extra ``embedded``) the Llama family,
and needs no compiler to be installed.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from ragworth.core.errors import MissingExtraError, ModelError
from ragworth.llm.contract import Card
from ragworth.llm.fingerprint import fingerprint
from ragworth.llm.local.engine import LOCAL_ABILITIES, Engine
from ragworth.llm.local.loaded import LoadedModel
from ragworth.llm.local.onnx_model import QUANTISATION, load_onnx
from ragworth.llm.truncation import parse_on_long

READERS = {
    "llama.cpp": ("llama_cpp", "llamacpp"),
    "onnx": ("onnxruntime", "embedded"),
}
"""Readers in order of preference, with the package each needs and its extra."""


def open_model(
    rest: str,
    *,
    reader: str = "auto",
    on_long: str = "error",
    context_length: int = 4096,
    threads: int = 0,
    gpu_layers: int = 0,
) -> Engine:
    """Open a GGUF file.

    Parameters
    ----------
    reader: ``llama.cpp`` or ``onnx``; ``auto`` uses the first that is installed.
    on_long: what to do if a prompt is too long: ``error``, or ``cut`` its passages.
    context_length: maximum tokens to read; memory is allocated for them.
    threads: cores to use; 0 uses all available ones.
    gpu_layers: layers that llama.cpp puts on a GPU.
    """
    path = Path(rest).expanduser()
    if not path.is_file():
        raise ModelError("no such file", file=rest, expected="gguf:FILE")
    with path.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise ModelError("this is not a GGUF file", file=rest, expected="a file that begins with GGUF")
    if context_length < 1:
        raise ModelError(f"context_length is {context_length}", expected="at least 1")
    name = _choose_reader(reader)

    def load() -> LoadedModel:
        if name == "llama.cpp":
            from ragworth.llm.local.gguf_file import check_header
            from ragworth.llm.local.llamacpp import load as load_llamacpp

            check_header(path)  # onnx checks what it builds
            return load_llamacpp(path, context=context_length, threads=threads, gpu_layers=gpu_layers)
        return _check_context(load_onnx(path, threads=threads), context_length)

    card = Card(
        backend="gguf",
        name=path.name,
        revision=fingerprint(path),
        quantisation=QUANTISATION if name == "onnx" else name,
        abilities=LOCAL_ABILITIES,
        context_length=context_length,
        cuts=parse_on_long(on_long),
    )
    return Engine(card, load, batch=64)


def _check_context(loaded: LoadedModel, context: int) -> LoadedModel:
    """Check that the model reads as many tokens as declared."""
    reads = getattr(loaded.runtime, "context", None)
    if reads is not None and context > reads:
        raise ModelError(f"the model reads {reads:,} tokens", remedy=f"context_length={reads}")
    return loaded


def _choose_reader(reader: str) -> str:
    if reader != "auto":
        if reader not in READERS:
            raise ModelError(f"the reader is {reader!r}", expected=f"auto, {', '.join(READERS)}")
        package, extra = READERS[reader]
        if find_spec(package) is None:
            raise MissingExtraError(package, extra, f"reading a GGUF file by {reader}")
        return reader
    for name, (package, _) in READERS.items():
        if find_spec(package) is not None:
            return name
    raise MissingExtraError("onnxruntime", "embedded", "reading a GGUF file")
