"""Check what a model was made for, so that none is run with randomly initialized parts.

The libraries load a model under a different head and make up missing weights. Here, a model made for something else is
rejected by the architecture in its config.json, with a message that says where it belongs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path

from ragworth.core.errors import ModelError
from ragworth.llm.model_files import first_line
from ragworth.retrieval.encoders.encoder_folder import read_json


class ModelPurpose(Enum):
    """A purpose: the name of such models, the suffixes of their architectures, and the step that takes them."""

    CLASSIFYING = "sequence classifiers", ("ForSequenceClassification",), 'rerank("cross-encoder:{}")'
    WRITING = (
        "sequence-to-sequence models",
        ("ForConditionalGeneration", "WithLMHeadModel", "EncoderDecoderModel"),
        'rerank("cross-encoder:{}")',
    )
    WEIGHTS = "sparse encoders", ("ForMaskedLM",), 'sparse("{}")'
    SPEAKING = "language models", ("ForCausalLM", "LMHeadModel"), 'useful(model="hf:{}")'
    VECTORS = "encoders of texts", ("Model",), 'dense("st:{}")'

    def __init__(self, plural: str, ends: tuple[str, ...], step: str) -> None:
        self.plural, self.ends, self.step = plural, ends, step

    def home(self, folder: Path) -> str:
        """Where a model in a folder belongs, if this is its purpose."""
        return f"{self.step.format(folder)} is for {self.plural}"


def architectures(folder: Path) -> tuple[str, ...]:
    """The architectures in a model's config.json: usually one, or none."""
    named = read_json(folder / "config.json", {}).get("architectures")
    return tuple(map(str, named)) if isinstance(named, list) else ()


def wrong_model_error(folder: Path, actual: str, wanted: ModelPurpose) -> ModelError:
    """The error for a model with the wrong purpose."""
    names = architectures(folder)
    others = [each for each in ModelPurpose if each is not wanted and any(name.endswith(each.ends) for name in names)]
    home = (others or [ModelPurpose.VECTORS])[0]
    return ModelError(
        actual,
        file=str(folder),
        expected=f"one of the {wanted.plural} (…{wanted.ends[0]})",
        remedy=f"use another model; {home.home(folder)}",
    )


def check_purpose(folder: Path, wanted: ModelPurpose) -> None:
    """Reject a model whose config.json names only architectures for other purposes."""
    names = architectures(folder)
    if names and not any(name.endswith(wanted.ends) for name in names):
        raise wrong_model_error(folder, f"the model has the architecture {names[0]}", wanted)


@contextmanager
def model_errors(what: str, folder: Path, remedy: str) -> Iterator[None]:
    """Convert errors of the libraries to model errors: what failed, and why."""
    try:
        yield
    except (OSError, ValueError, LookupError, RuntimeError, ImportError) as error:
        if "out of memory" in str(error):  # how libraries report it for a GPU, without a common type
            remedy = "free memory, or use a smaller model or a shorter length"
        raise ModelError(f"{what}: {first_line(error)}", file=str(folder), remedy=remedy) from error
