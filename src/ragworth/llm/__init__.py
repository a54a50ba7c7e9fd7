"""Language models: the interface (`contract`), and one module per backend."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from ragworth.core.errors import ModelError, quote_short
from ragworth.core.registry import Registry
from ragworth.llm.contract import Model
from ragworth.llm.local.adapter import adapter_model_spec, is_adapter_folder

MODELS: Registry[Callable[..., Model]] = Registry(
    "kind of model",
    "ragworth.models",
    {
        "embedded": "ragworth.llm.embedded:open_model",
        "gguf": "ragworth.llm.gguf:open_model",
        "hf": "ragworth.llm.hf:open_model",
        "openai": "ragworth.llm.openai.model:open_model",
        "sampled": "ragworth.llm.sampled:open_model",
        "scripted": "ragworth.llm.scripted:open_model",
        "vllm": "ragworth.llm.vllm:open_model",
    },
)
"""Backends: each opens a model from the text after its name and a colon, and from options."""

KINDS = {
    "embedded": ("embedded", "a small model on this machine: no network, no key, no GPU"),
    "gguf": ("gguf:FILE", "a GGUF file, on this machine"),
    "hf": ("hf:NAME_OR_FOLDER", "a model of the transformers library, on the CPU or a GPU"),
    "openai": ("openai:NAME@URL", "any OpenAI-compatible endpoint; the key comes from the environment"),
    "sampled": ("sampled:MODEL", "label probabilities by counting samples, for models that can only generate"),
    "scripted": ("scripted:FILE", "answers from a file, and faults on request, for tests"),
    "vllm": ("vllm:NAME_OR_FOLDER", "the same models as hf, run by vLLM"),
}
"""The written form of each kind, and a description."""


def llm(spec: str = "embedded", **options: Any) -> Model:
    """Open a model by its written form.

    ``embedded`` needs no network, key or GPU. ``gguf:FILE`` reads a GGUF file, ``hf:NAME_OR_FOLDER`` a model of
    the transformers library, which ``vllm:`` runs in vLLM. ``openai:NAME@URL`` calls an
    endpoint, ``sampled:MODEL`` counts samples of another model, ``scripted:FILE`` replays a file. The folder of a LoRA
    adapter alone opens its base with the adapter. Options depend on the kind; unknown ones are an error.
    """
    if is_adapter_folder(Path(spec)):
        spec = adapter_model_spec(spec)
    kind, _, rest = spec.partition(":")
    if kind not in MODELS:
        raise ModelError(
            f"unknown kind of model {spec!r}",
            expected=", ".join(KINDS[name][0] if name in KINDS else name for name in MODELS.names()),
            remedy=MODELS.unknown(kind).remedy or f"for a model behind an endpoint, write openai:{spec}@URL",
        )
    opener = MODELS.get(kind)
    parameters = inspect.signature(opener).parameters
    unknown = [name for name in options if name not in parameters]
    if unknown and not any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        raise ModelError(
            f"a model of kind {kind!r} has no option {', '.join(unknown)}",
            expected=", ".join(name for name in parameters if name != "rest") or "no options",
        )
    model = opener(rest, **{name: _check_option(name, value, parameters.get(name)) for name, value in options.items()})
    _OPENED[model] = OpenedModel(spec, options)
    return model


class OpenedModel(NamedTuple):
    """The written form and the options that open a model again, in another process."""

    spec: str
    options: Mapping[str, Any]


_OPENED: WeakKeyDictionary[Model, OpenedModel] = WeakKeyDictionary()


def how_opened(model: Model) -> OpenedModel:
    """Return the written form and options of a model; one that was made otherwise is an error."""
    if model not in _OPENED:
        raise ModelError(
            f"the model {model.card.name!r} was not opened by its written form",
            expected="a model from ragworth.llm(…), which other processes can open too",
        )
    return _OPENED[model]


def _check_option(name: str, value: Any, parameter: inspect.Parameter | None) -> Any:
    """Check that an option's value has the type that the backend declares."""
    kinds: dict[str, tuple[type, ...]] = {"int": (int,), "float": (int, float), "bool": (bool,), "str": (str,)}
    wanted = str(parameter.annotation) if parameter is not None else ""
    if wanted == "str" and isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    fits = isinstance(value, kinds.get(wanted, (object,)))
    if not fits or (isinstance(value, bool) and wanted in ("int", "float")):
        words = {"int": "a whole number", "float": "a number", "bool": "true or false", "str": "a text"}
        raise ModelError(f"the option {name} is {quote_short(value)}", expected=words[wanted])
    return value


class _CallableLlm(ModuleType):
    """Makes this package callable: ``ragworth.llm`` is the function or the package, whichever was imported first."""

    def __call__(self, spec: str = "embedded", **options: Any) -> Model:
        return llm(spec, **options)


sys.modules[__name__].__class__ = _CallableLlm
