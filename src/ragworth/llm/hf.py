"""``hf:NAME_OR_PATH``: causal language models of the transformers library, on the CPU or a GPU.

Only safetensors files are read (no pickle), code that comes with a model is never run, and nothing is downloaded
without ``download=True``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ragworth.core.errors import MissingExtraError, ModelError
from ragworth.core.nested_text import parse_json
from ragworth.llm.contract import Card
from ragworth.llm.local.adapter import EMBEDDED_BASE, PeftAdapter, is_adapter_folder
from ragworth.llm.local.engine import LOCAL_ABILITIES, Engine
from ragworth.llm.local.prompt_encoding import PromptEncoder, load_chat_template
from ragworth.llm.local.runtime import LoadedModel
from ragworth.llm.model_files import find_snapshot, fingerprint, local_folder
from ragworth.llm.truncation import parse_on_long

EMBEDDED_CONTEXT = 8192
"""Tokens that the embedded model reads."""

ONLY_HERE: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
"""Nothing is downloaded, and no code of a model is run."""

DTYPES = ("auto", "float32", "bfloat16", "float16")
FLOAT8 = "float8"
FLOAT8_CAPABILITY = (8, 9)
"""The first NVIDIA GPUs that multiply in float8: Ada and Hopper."""


def open_model(
    rest: str,
    *,
    dtype: str = "auto",
    device: str = "auto",
    on_long: str = "error",
    batch_tokens: int = 0,
    context_length: int = 0,
    revision: str = "main",
    download: bool = False,
    share_prefix: bool = True,
    compile: bool = False,
    base: str = "",
) -> Engine:
    """Open a model by its name in the local cache, or by its folder; an adapter of the PEFT library by its folder.

    Parameters
    ----------
    dtype: float32, bfloat16 or float16; ``auto`` is bfloat16 on a GPU and float32 elsewhere. ``float8`` multiplies
        in 8 bits, on GPUs that can; the rest is bfloat16.
    device: ``cpu``, ``cuda``, ``cuda:1``, ``mps``; ``auto`` uses a GPU if there is one.
    on_long: what to do if a prompt is too long: ``error``, or ``cut`` its passages.
    batch_tokens: maximum tokens of a batch, including padding; 0 chooses by the device's memory.
    context_length: maximum tokens to read; 0 uses the model's configuration.
    share_prefix: read the common prefix of a batch's prompts only once.
    compile: let PyTorch fuse small steps: takes a minute, then a GPU is about a fifth faster; for long jobs.
    revision: commit, branch or tag of a model on the hub.
    download: download a model that is not in the local cache from the Hugging Face hub.
    base: the model that an adapter changes, if it isn't where the adapter says.
    """
    require_transformers()
    if dtype not in (*DTYPES, FLOAT8):
        raise ModelError(f"dtype is {dtype!r}", expected=", ".join((*DTYPES, FLOAT8)))
    adapter = PeftAdapter(Path(rest)) if is_adapter_folder(Path(rest)) else None
    if base and adapter is None:
        raise ModelError(f"base is {base!r}, and {rest!r} isn't an adapter", expected="base for adapters only")
    folder = _base_folder(adapter, base, revision, download) if adapter else find_model_folder(rest, revision, download)
    weights = fingerprint(folder)
    if adapter is not None:
        adapter.check_base(weights)
    reads = EMBEDDED_CONTEXT if folder.is_file() else find_context_length(read_json(folder / "config.json"))
    if context_length < 0 or (reads is not None and context_length > reads):
        raise ModelError(f"context_length is {context_length}", expected=f"at most {reads}, which the model reads")
    device = resolve_device(device)
    dtype = dtype if dtype != "auto" else ("float32" if device in ("cpu", "mps") else "bfloat16")
    if dtype == FLOAT8:
        _require_float8(device)
    card = Card(
        backend="hf",
        name=rest if not Path(rest).exists() else Path(rest).resolve().name,
        revision=weights + (f"+{adapter.digest}" if adapter is not None else ""),
        quantisation=dtype,
        abilities=LOCAL_ABILITIES,
        context_length=context_length or reads,
        cuts=parse_on_long(on_long),
    )

    def load() -> LoadedModel:
        import torch

        from ragworth.llm.local.torch_runtime import TorchRuntime, build_batch_budget

        silence_libraries()
        weights_dtype = torch.bfloat16 if dtype == FLOAT8 else getattr(torch, dtype)
        model, encoder = _load_weights(folder, adapter, weights_dtype)
        runtime = TorchRuntime(model.to(device), dtype, float8=dtype == FLOAT8, compiled=compile)
        return LoadedModel(runtime, encoder, build_batch_budget(model, batch_tokens))

    return Engine(card, load, batch=1024 if device != "cpu" else 64, share=share_prefix)


def require_transformers() -> None:
    """Packages that are missing are an error which names the extra."""
    for package in ("torch", "transformers"):
        if find_spec(package) is None:
            raise MissingExtraError(package, "hf", "running a model of the transformers library")


def resolve_device(device: str) -> str:
    """Resolve ``auto``; a device that doesn't exist is an error."""
    import torch

    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ModelError(
            f"the device {device!r} can't be used: {error}", expected="cpu, cuda, cuda:N or mps", remedy="device=auto"
        ) from error
    return device


def silence_libraries() -> None:
    """Turn off progress bars and hints of the underlying libraries, in favour of ours."""
    from transformers.utils import logging

    logging.disable_progress_bar()
    logging.set_verbosity_error()


def _require_float8(device: str) -> None:
    """Refuse a device that can't multiply in float8 before anything is loaded."""
    import torch

    if not device.startswith("cuda") or torch.cuda.get_device_capability(device) < FLOAT8_CAPABILITY:
        raise ModelError(
            f"dtype is {FLOAT8!r}, and {device!r} can't multiply in 8 bits",
            expected="an NVIDIA GPU of the Ada or Hopper generation, or later",
            remedy="dtype=bfloat16",
        )


def _load_weights(folder: Path, adapter: PeftAdapter | None, dtype: Any) -> tuple[Any, PromptEncoder]:
    """A model with its adapter added to its weights, and the encoder of its prompts."""
    if folder.is_file():
        from ragworth.llm.local.gguf_torch import load_gguf_llama

        llama = load_gguf_llama(folder, adapter.deltas() if adapter is not None else None)
        return llama.model.to(dtype), llama.encoder
    model, tokenizer = load_folder(folder, "float32" if adapter is not None else dtype)
    if adapter is not None:
        add_deltas(model, adapter)
    return model.to(dtype), build_prompt_encoder(tokenizer, model.generation_config)


def load_folder(folder: Path, dtype: Any) -> tuple[Any, Any]:
    """The model and the tokenizer in a folder."""
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, use_safetensors=True, **ONLY_HERE)
    return model, load_tokenizer(folder)


def load_tokenizer(folder: Path) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(folder, **ONLY_HERE)


def add_deltas(model: Any, adapter: PeftAdapter) -> None:
    """Add an adapter to the weights of a model."""
    import torch

    weights = dict(model.named_parameters())
    for name, delta in adapter.deltas().items():
        if name not in weights or tuple(weights[name].shape) != delta.shape:
            raise ModelError(
                f"its base has no matrix {name} of this size", file=str(adapter.path), expected=adapter.base
            )
        with torch.no_grad():
            weights[name].add_(torch.from_numpy(delta).to(weights[name].device, weights[name].dtype))


def _base_folder(adapter: PeftAdapter, base: str, revision: str, download: bool) -> Path:
    """The folder of an adapter's base, or the file of the embedded one."""
    named = base or adapter.base
    if named == EMBEDDED_BASE:
        from ragworth.llm.embedded import weights_file

        return weights_file()
    if not named:
        raise ModelError(
            "it doesn't say which model it changes", file=str(adapter.path), remedy="the option base=FOLDER"
        )
    try:
        return find_model_folder(named.removeprefix("hf:"), revision, download)
    except ModelError as error:
        raise error.copy(found=f"the base of the adapter {adapter.path}: {error.found}") from error


class TransformersTokenizer:
    """A transformers tokenizer as `prompt_encoding.Tokenizer`."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer

    def encode(self, texts: Sequence[str], *, whole: bool) -> list[list[int]]:
        if not texts:  # which the library can't encode
            return []
        return list(self._tokenizer(list(texts), add_special_tokens=whole, verbose=False)["input_ids"])

    def decode(self, ids: list[int]) -> str:
        return str(self._tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False))


def build_prompt_encoder(tokenizer: Any, generation: Any) -> PromptEncoder:
    """Build the encoder of prompts for a transformers model, by its configuration of generation, if any."""
    source = tokenizer.get_chat_template() if tokenizer.chat_template else None
    facts = {**tokenizer.special_tokens_map, "tools": None, "documents": None}
    ends = generation.eos_token_id if generation is not None else None
    ends = tokenizer.eos_token_id if ends is None else ends
    return PromptEncoder(
        TransformersTokenizer(tokenizer),
        load_chat_template(str(source), facts) if source else None,
        _control_tokens(tokenizer),
        frozenset([ends] if isinstance(ends, int) else ends or []),
    )


def _control_tokens(tokenizer: Any) -> tuple[str, ...]:
    """Every token that is matched before a text is split, whether or not it has a name such as EOS."""
    added = getattr(tokenizer, "added_tokens_decoder", {}).values()
    tokens = [token.content for token in added if token.special] + [str(each) for each in tokenizer.all_special_tokens]
    return tuple(dict.fromkeys(tokens))


def find_model_folder(name: str, revision: str, download: bool) -> Path:
    """Find the model's folder."""
    path = Path(name).expanduser()
    if own := local_folder(path):
        return own
    if path.exists():
        raise ModelError("this is a file", file=name, remedy=f"to read a GGUF file, use gguf:{name}")
    if path.is_absolute() or name.startswith((".", "~")) or "/" not in name:
        raise ModelError("no such folder", file=name, expected="a folder, or OWNER/NAME of the hub")
    folder = find_snapshot("model", name, revision, download, ("*.jinja",))
    if folder is None:
        raise ModelError(
            f"the model {name!r} is not in the local cache",
            remedy=f"hf download {name}, or the option download=true, which downloads it from the Hugging Face hub",
        )
    return folder


def read_json(path: Path) -> Mapping[str, Any]:
    try:
        value = parse_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"it cannot be read: {error}", file=str(path)) from error
    return value if isinstance(value, dict) else {}


def find_context_length(config: Mapping[str, Any]) -> int | None:
    """Maximum tokens according to the configuration."""
    for part in (config, config.get("text_config") or {}):
        for name in ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length"):
            if isinstance(part.get(name), int):
                return int(part[name])
    return None
