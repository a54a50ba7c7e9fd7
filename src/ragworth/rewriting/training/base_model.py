"""The model that training starts from."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from ragworth.core.errors import InputError, MissingExtraError
from ragworth.llm.embedded import weights_file
from ragworth.llm.local.adapter import EMBEDDED_BASE
from ragworth.llm.local.prompt_encoding import PromptEncoder
from ragworth.llm.model_files import fingerprint, local_folder

PACKAGES = ("torch", "transformers", "trl", "peft", "datasets", "accelerate")


class BaseFiles(NamedTuple):
    """Where a base model is, and the hash of its weights."""

    spec: str
    path: Path
    revision: str

    @property
    def name(self) -> str:
        """What an adapter's configuration calls it."""
        return EMBEDDED_BASE if self.path.is_file() else str(self.path)


class TrainableModel(NamedTuple):
    """A model in memory, its tokenizer for the trainer, and the encoder of its prompts."""

    model: Any
    tokenizer: Any
    encoder: PromptEncoder


def require_training() -> None:
    """Refuse to train without the packages of the extra ``train``."""
    for package in PACKAGES:
        if find_spec(package) is None:
            raise MissingExtraError(package, "train", "training a rewriter")


def base_path(spec: str) -> Path:
    """Where a base model is, by its written form; a model that can't be trained, or isn't there, is an error."""
    if spec == EMBEDDED_BASE:
        path: Path | None = weights_file()
    else:
        path = local_folder(Path(spec.removeprefix("hf:")).expanduser()) if spec.startswith("hf:") else None
    if path is None:
        raise InputError(
            f"the base model is {spec!r}",
            expected=f"hf:FOLDER with a model of the transformers library, or {EMBEDDED_BASE}",
        )
    return path.resolve()


def find_base(spec: str) -> BaseFiles:
    """Find a base model by its written form, without loading it."""
    path = base_path(spec)
    return BaseFiles(spec, path, fingerprint(path))


def load_base(base: BaseFiles) -> TrainableModel:
    """Load a base model in single precision."""
    from ragworth.llm.hf import build_prompt_encoder, load_folder, silence_libraries

    silence_libraries()
    if base.path.is_file():
        from ragworth.llm.local.gguf_torch import load_gguf_llama

        found = load_gguf_llama(base.path)
        return TrainableModel(found.model, found.tokenizer, found.encoder)
    model, tokenizer = load_folder(base.path, "float32")
    if tokenizer.eos_token is None:
        raise InputError("its tokenizer has no end-of-text token", file=str(base.path), expected="eos_token")
    return TrainableModel(model, tokenizer, build_prompt_encoder(tokenizer, model.generation_config))
