"""The embedded models in PyTorch: the integers of the ONNX graph, so nearly its probabilities."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import ragworth
from ragworth.errors import ModelError
from ragworth.llm.contract import Choose, Generate
from ragworth.llm.local import onnx_model
from ragworth.llm.local.gguf_torch import load_gguf_llama
from ragworth.llm.local.runtime import TokenRow
from ragworth.llm.local.torch_runtime import TorchRuntime
from ragworth.tasks.answerability import NO_RESPONSE_LABEL
from tests.llm.local import made_gguf

pytestmark = pytest.mark.torch
EVERYTHING = list(range(275))


def logs(runtime: Any, rows: list[list[int]]) -> Any:
    found = runtime.read([TokenRow(ids, len(ids) - 1, [EVERYTHING]) for ids in rows])
    return np.array([one.logprobs[0] for one in found])


def test_probabilities_are_those_of_the_graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAGWORTH_CACHE", str(tmp_path / "cache"))
    file = made_gguf.write(tmp_path / "tiny.gguf")
    draw = np.random.default_rng(0)
    rows = [draw.integers(0, 256, size).tolist() for size in (3, 12, 40)]
    graph = logs(onnx_model.load(file).runtime, rows)
    rounded = TorchRuntime(load_gguf_llama(file).model, "int8", rounding="int8")
    plain = logs(TorchRuntime(load_gguf_llama(file).model, "float32"), rows)
    ours = logs(rounded, rows)
    assert np.abs(ours - graph).mean() < 0.3 * np.abs(plain - graph).mean()
    rest = rounded.read([TokenRow(rows[2][10:], 29, [EVERYTHING])], rounded.prefix(rows[2][:10]))
    np.testing.assert_allclose(rest[0].logprobs[0], ours[2], atol=0.05)


@pytest.mark.model
def test_the_reader_on_another_device_judges_and_answers_the_same() -> None:
    """``cpu:0`` is PyTorch, which does there what it does on a GPU."""
    passage = "The mill on the Oule was built by Ann Hale in 1712."
    questions = ("Who built the mill?", "Who owns the ferry?")
    prompts = [ragworth.prompt("abstention", "plain").render({"query": q, "passage": passage}) for q in questions]
    asked = [Choose(prompt, (NO_RESPONSE_LABEL,), "first-token") for prompt in prompts]
    graph: Any = ragworth.llm()
    other: Any = ragworth.llm("embedded", device="cpu:0")
    assert graph.card == other.card
    expected, found = ([one.probabilities[0] for one in model.choose(asked)] for model in (graph, other))
    np.testing.assert_allclose(found, expected, atol=0.1)
    assert [p > 0.5 for p in found] == [False, True]
    said = [[one.outputs[0].text for one in model.generate([Generate(prompts[0], 4)])] for model in (graph, other)]
    assert said[0] == said[1]


@pytest.mark.model
def test_a_device_that_is_not_there() -> None:
    with pytest.raises(ModelError, match="the device 'cuda:77' can't be used"):
        ragworth.llm("embedded", device="cuda:77")
    assert ragworth.llm("embedded", device="auto").card == ragworth.llm().card
