"""Build GGUF files into ONNX graphs once, which takes seconds, then load them from the cache folder.

A built model is a folder that is created atomically, named after everything that determines what it computes. If its
files have changed, or it was built from something else, it is built again.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ragworth.core.cache import cache_folder
from ragworth.core.errors import MissingExtraError, ModelError
from ragworth.core.files import open_folder
from ragworth.llm.fingerprint import fingerprint, sha256

if TYPE_CHECKING:
    from ragworth.llm.local.adapter import Adapter
    from ragworth.llm.local.bpe import BpeTokenizer
    from ragworth.llm.local.onnx_runtime import OnnxRuntime
    from ragworth.llm.local.peft_adapter import PeftAdapter

VERSION = 1
"""Incremented with every change in what is computed or how it is stored."""

METADATA_FILE, TOKENIZER_FILE = "facts.json", "tokenizer.json"


@dataclass(frozen=True)
class OnnxMetadata:
    """Metadata of a model besides its weights."""

    name: str
    license: str
    revision: str
    """A hash of the file, and of the adapter if there is one."""
    quantisation: str
    context_length: int
    chat_template: str
    bos: str
    eos: str
    control: tuple[str, ...]
    """Spellings of control tokens."""
    ends: tuple[int, ...]
    """Tokens that end a turn."""
    signed: bool
    """Whether weights are stored with a sign (see `onnx_session.has_exact_int8`); results are the same."""


class OpenedOnnxModel(NamedTuple):
    """A model, ready for requests."""

    runtime: OnnxRuntime
    tokenizer: BpeTokenizer
    facts: OnnxMetadata


def load(path: Path, *, threads: int | None = None, adapter: Adapter | PeftAdapter | None = None) -> OpenedOnnxModel:
    """Load a GGUF file of the Llama family, building it first if necessary.

    Parameters
    ----------
    threads: cores to use; None uses all available ones.
    adapter: differences added to weights.
    """
    for package in ("onnxruntime", "tokenizers", "onnx", "gguf"):
        if find_spec(package) is None:
            raise MissingExtraError(package, "embedded", "reading a GGUF file")
    revision = fingerprint(path) + (f"+{adapter.digest}" if adapter is not None else "")
    name = hashlib.sha256(f"{revision} {VERSION}".encode()).hexdigest()[:24]
    folder = cache_folder() / "models" / name
    facts = _find_built(folder, revision)
    if facts is None:
        try:
            facts = _build(path, folder, revision, adapter)
        except OSError as error:
            raise ModelError(
                f"the model can't be saved: {folder.parent} can't be written to ({error.strerror or error})",
                remedy="set RAGWORTH_CACHE to a writable folder with 200 MB of space",
            ) from error

    from tokenizers import Tokenizer

    from ragworth.llm.local.bpe import BpeTokenizer
    from ragworth.llm.local.onnx_runtime import OnnxRuntime
    from ragworth.llm.local.onnx_session import MODEL

    runtime = OnnxRuntime(folder / MODEL, facts.quantisation, context=facts.context_length, threads=threads)
    return OpenedOnnxModel(runtime, BpeTokenizer(Tokenizer.from_file(str(folder / TOKENIZER_FILE))), facts)


def _find_built(folder: Path, revision: str) -> OnnxMetadata | None:
    """Find an earlier build that is unchanged, from the same weights, and right for this machine."""
    from ragworth.llm.local.onnx_session import PROBE, has_exact_int8

    try:
        kept = json.loads((folder / METADATA_FILE).read_text(encoding="utf-8"))
        whole = all(_checksum(folder / name) == value for name, value in kept["files"].items())
        said: dict[str, Any] = {name: tuple(x) if isinstance(x, list) else x for name, x in kept["facts"].items()}
        facts = OnnxMetadata(**said)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    same = whole and facts.revision == revision
    return facts if same and (not facts.signed or has_exact_int8(folder / PROBE)) else None


def _build(path: Path, folder: Path, revision: str, adapter: Adapter | PeftAdapter | None) -> OnnxMetadata:
    """Build a model in a folder that gets its name when it is complete."""
    with open_folder(folder) as part:
        facts = _write_files(path, part, revision, adapter)
        files = {file.name: _checksum(file) for file in sorted(part.iterdir())}
        (part / METADATA_FILE).write_text(json.dumps({"facts": asdict(facts), "files": files}), encoding="utf-8")
    return facts


def _write_files(path: Path, folder: Path, revision: str, adapter: Adapter | PeftAdapter | None) -> OnnxMetadata:
    """Write all files of a model except the last."""
    from ragworth.llm.local import bpe, gguf_file
    from ragworth.llm.local.onnx_graph import write_decoder, write_probe
    from ragworth.llm.local.onnx_session import PROBE, has_exact_int8
    from ragworth.llm.local.onnx_tensors import IntegerArithmetic
    from ragworth.llm.local.onnx_weights import merge_deltas

    found = gguf_file.read_gguf(path)
    write_probe(folder)
    way = IntegerArithmetic(signed=has_exact_int8(folder / PROBE))
    weights = found.weights if adapter is None else merge_deltas(found.weights, adapter.deltas())
    try:
        write_decoder(folder, found.sizes, weights, way)
    except ValueError as error:  # matrices of a damaged file don't match
        raise ModelError(
            f"its weights don't have the sizes that it announces: {error}",
            file=str(path),
            expected="a complete GGUF file",
        ) from error
    vocabulary = found.vocabulary
    bpe.build_tokenizer(vocabulary).save(str(folder / TOKENIZER_FILE))
    marked = zip(vocabulary.tokens, vocabulary.types, strict=True)
    return OnnxMetadata(
        name=found.name,
        license=found.license,
        revision=revision,
        quantisation=f"onnx {way.name} {VERSION}",
        context_length=found.sizes.context,
        chat_template=found.chat_template,
        bos=found.bos,
        eos=found.eos,
        control=tuple(token for token, kind in marked if kind == bpe.CONTROL),
        ends=found.ends,
        signed=way.signed,
    )


def _checksum(path: Path) -> list[Any]:
    """Size, CRC-32 and SHA-256. The first two detect damage on every load. The last, which takes a second and is cached
    until the file changes, detects deliberate changes.
    """
    total = 0
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            total = zlib.crc32(piece, total)
    return [path.stat().st_size, total, sha256(path)]
