"""Open a model from whatever was given."""

from __future__ import annotations

from ragworth.core.errors import ModelError, quote_short
from ragworth.llm.contract import Model


def resolve_model(model: Model | str | None) -> Model:
    """Return the model itself, open one by its written form such as ``hf:NAME``, or the embedded one for None."""
    if model is None or isinstance(model, str):
        from ragworth.llm import llm

        return llm() if model is None else llm(model)
    if not hasattr(model, "card"):
        raise ModelError(
            f"the model is {quote_short(model)}", expected="a model from ragworth.llm, its written form, or None"
        )
    return model
