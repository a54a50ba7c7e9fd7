"""A few steps of training on a tiny model, from examples to an adapter that the embedded model is built with."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from training.reader import figures, recipe, train
from training.reader.model import adapt, read
from training.reader.rows import Row, batches, rows

from ragworth.llm.local.adapter import Adapter, read_safetensors
from ragworth.llm.local.gguf_torch import load_gguf_llama
from ragworth.llm.local.onnx_model import load_onnx
from ragworth.llm.local.onnx_runtime import OnnxRuntime
from ragworth.llm.local.runtime import TokenRow as Asked
from tests.llm.local import made_gguf
from tests.training.samples import as_nq

pytestmark = pytest.mark.torch
EVERYTHING = list(range(275))
STEPS, RANK, ALPHA = 3, 4, 8.0


class Trained(NamedTuple):
    """A tiny model, the examples, and the adapter that was trained."""

    weights: Path
    examples: Path
    adapter: Adapter


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    folder = tmp_path_factory.mktemp("reader")
    weights = made_gguf.write(folder / "tiny.gguf")
    drawn = folder / "drawn.jsonl"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("builtins.print", lambda *_, **__: None)
        options = ["--held-out", "0.5", "--passes", "1", "-o", str(drawn)]
        recipe.main(["--nq", str(as_nq(folder / "nq.jsonl")), *options])
    lines = [line for line in drawn.read_text().splitlines() if '"kind": "context' not in line]
    few = [line for part in ("train", "held-out") for line in [x for x in lines if f'"part": "{part}"' in x][:8]]
    examples = folder / "examples.jsonl"
    examples.write_text("\n".join(few))
    output = folder / "reader.safetensors"
    given = f"--rank {RANK} --alpha {ALPHA} --steps {STEPS} --tokens 3200 --rate 0.02 --fewer 0.5 --device cpu"
    train.main([str(examples), "--weights", str(weights), "-o", str(output), *given.split()])
    return Trained(weights, examples, Adapter(output))


@pytest.fixture(scope="module")
def prompts(trained: Trained) -> list[list[int]]:
    _, writer = read(trained.weights, "cpu")
    return [row.ids[: row.start] for row in rows(trained.examples, writer, "held-out", 2000)][:3]


def logs(model: Any, prompts: list[list[int]]) -> list[Any]:
    """Log-probabilities of what is said first."""
    with torch.no_grad():
        return [torch.log_softmax(model(torch.tensor([ids])).logits[0, -1], -1).numpy() for ids in prompts]


@pytest.fixture(scope="module")
def adapted(trained: Trained, prompts: list[list[int]]) -> list[Any]:
    """By PyTorch, with the matrices of the file in the place of those that were learned."""
    model, _ = read(trained.weights, "cpu")
    arrays = read_safetensors(trained.adapter.path).arrays
    for name, one in adapt(model, RANK, ALPHA, 0.0).items():
        one.down.data = torch.from_numpy(arrays[f"{name}.down"])
        one.up.data = torch.from_numpy(arrays[f"{name}.up"] * arrays[f"{name}.scale"]) / one.scale
    return logs(model.eval(), prompts)


def ours(runtime: OnnxRuntime, prompts: list[list[int]]) -> list[Any]:
    reads = runtime.read([Asked(ids, len(ids) - 1, [EVERYTHING]) for ids in prompts])
    return [np.array(read.logprobs[0]) for read in reads]


def test_what_is_saved_is_an_adapter(trained: Trained) -> None:
    about = trained.adapter.about
    assert (about["rank"], about["alpha"], about["seed"], about["passes"]) == ("4", "8", "0", "1")
    assert about["fewer"] == "0.5"
    assert about["base"] == "tiny.gguf"
    assert len(trained.adapter.deltas()) == 7 * made_gguf.LAYERS
    assert all(np.abs(delta).max() > 0 for delta in trained.adapter.deltas().values())


def test_the_model_with_the_adapter_is_the_one_that_was_trained(
    trained: Trained, prompts: list[list[int]], adapted: list[Any]
) -> None:
    merged = load_gguf_llama(trained.weights, trained.adapter.deltas()).model.eval()
    for found, expected in zip(logs(merged, prompts), adapted, strict=True):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4)


def test_the_embedded_model_with_the_adapter_is_close_to_it(
    trained: Trained, prompts: list[list[int]], adapted: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAGWORTH_CACHE", str(tmp_path))
    runtime = load_onnx(trained.weights, threads=1, adapter=trained.adapter).runtime
    assert isinstance(runtime, OnnxRuntime)
    base = logs(read(trained.weights, "cpu")[0].eval(), prompts)
    for found, expected, before in zip(ours(runtime, prompts), adapted, base, strict=True):
        moved = 0.5 * np.abs(np.exp(found) - np.exp(expected)).sum()
        assert moved < 0.05
        assert np.abs(found - expected).max() < 0.5
        # and what was learned is more than what integers lose
        assert 0.5 * np.abs(np.exp(before) - np.exp(expected)).sum() > 2 * moved


def test_rows_are_what_the_model_reads_and_then_says(trained: Trained) -> None:
    _, writer = read(trained.weights, "cpu")
    items = [json.loads(line) for line in trained.examples.read_text().splitlines()]
    made = [*rows(trained.examples, writer, "train", 2000), *rows(trained.examples, writer, "held-out", 2000)]
    assert len(made) == len(items)
    for row, item in zip(made, items, strict=True):
        assert writer.tokenizer.decode(row.ids[row.start :]) == item["answer"]
        assert item["messages"][-1][1] in writer.tokenizer.decode(row.ids[: row.start])
        assert row.ids[-1] == 2  # <|im_end|>
        assert (row.declines, row.kind) == (item["answer"] == "NO-RESPONSE", item["kind"])
    assert not list(rows(trained.examples, writer, "train", 100))  # all are longer


def test_only_what_is_said_is_learned(trained: Trained) -> None:
    model, writer = read(trained.weights, "cpu")
    some = list(rows(trained.examples, writer, "train", 2000))[:3]
    with torch.no_grad():
        found, wanted = train.losses(model, some, "cpu")
        for number, row in enumerate(some):
            assert int(wanted[number].sum()) == len(row.ids) - row.start
            every = torch.log_softmax(model(torch.tensor([row.ids])).logits[0], -1)
            alone = [float(every[place - 1, row.ids[place]]) for place in range(row.start, len(row.ids))]
            assert found[number][wanted[number]].tolist() == pytest.approx(alone, abs=1e-4)


def test_batches_hold_every_row_once_and_no_more_than_they_may() -> None:
    draw = random.Random(0)
    some = [Row([number] * draw.randint(5, 90), 1, "gold", False, 0) for number in range(200)]
    made = batches(some, 400, random.Random(1))
    assert sorted(row.ids for batch in made for row in batch) == sorted(row.ids for row in some)
    # Rows of nearly the same length are mixed, so a batch may end a little above.
    assert max(max(len(row.ids) for row in batch) * len(batch) for batch in made) < 800


def test_figures_by_hand() -> None:
    yes = torch.tensor([True, True, False, False])
    assert figures.auc(torch.tensor([4.0, 2.0, 3.0, 1.0]), yes) == 0.75  # 3 of 4 pairs
    # Two bins: 0.95 and 0.95 with one of two right, 0.05 and 0.05 with one of two: |0.95 − 0.5|, |0.05 − 0.5|.
    p = torch.tensor([0.95, 0.05, 0.95, 0.05], dtype=torch.float64)
    assert figures.ece(p, yes) == pytest.approx(0.45)
    # Odds of 9 that are right three times of four, odds of 3: ln 9 / T = ln 3, so that T is 2.
    odds = torch.full((4,), float(np.log(9)), dtype=torch.float64)
    assert figures.temperature(
        odds, torch.tensor([True, True, True, False]), torch.full((4,), 0.25, dtype=torch.float64)
    ) == pytest.approx(2, rel=0.01)
