"""The rewriter's recipe: the examples that the shipped adapter names, and the file that training becomes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

pytest.importorskip("safetensors")

from safetensors.numpy import load_file, save_file
from training.rewriter import examples, export

import ragworth
from ragworth.llm import embedded
from ragworth.llm.local.adapter import ABOUT, CONFIG, PREFIX, WEIGHTS, Adapter
from ragworth.rewriting.training.run import TrainingRun

RANK, ALPHA = 3, 6
SHAPES = {"layers.0.q": (8, 12), "layers.1.up": (20, 8)}
"""Outputs and inputs of the matrices that it changes."""


def trained(folder: Path) -> dict[str, np.ndarray]:
    """A folder as training writes it; returns what the adapter adds to each matrix."""
    draw, arrays, added = np.random.default_rng(5), {}, {}
    for name, (outputs, inputs) in SHAPES.items():
        down, up = draw.normal(size=(RANK, inputs)), draw.normal(size=(outputs, RANK))
        arrays[f"{PREFIX}{name}.lora_A.weight"] = down.astype(np.float32)
        arrays[f"{PREFIX}{name}.lora_B.weight"] = up.astype(np.float32)
        added[f"{name}.weight"] = up @ down * ALPHA / RANK
    folder.mkdir()
    save_file(arrays, folder / WEIGHTS)
    config = {"peft_type": "LORA", "r": RANK, "lora_alpha": ALPHA, "base_model_name_or_path": "embedded:base"}
    (folder / CONFIG).write_text(json.dumps(config))
    about = {"base": {"revision": "abc"}, "prompt": "Rewrite.", "data": {"hash": "123"}, "seed": 0}
    (folder / ABOUT).write_text(json.dumps(about))
    return added


def test_the_file_that_ships_adds_the_same_in_8_bits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    added, file = trained(tmp_path / "adapter"), tmp_path / "rewriter.safetensors"
    export.main([str(tmp_path / "adapter"), str(file)])
    assert f"{file.stat().st_size:,} bytes, SHA-256 " in capsys.readouterr().out
    written = load_file(file)
    assert {array.dtype for name, array in written.items() if not name.endswith(".scale")} == {np.dtype(np.int8)}
    assert all(written[f"{name}.scale"].shape == (RANK,) for name in SHAPES)
    found = Adapter(file)
    assert found.about == {"base": "abc", "prompt": "Rewrite.", "data": "123"}
    deltas = found.deltas()
    assert deltas.keys() == added.keys()
    for name, expected in added.items():
        assert np.linalg.norm(deltas[name] - expected) < 0.02 * np.linalg.norm(expected), name


def test_the_shipped_rewriter_learned_from_these_examples(data: Path, tmp_path: Path) -> None:
    folder = tmp_path / "rewriter"
    examples.main([str(data / "canard" / "dev.json.gz"), str(folder)])
    turns = ragworth.load(f"conversations:{folder / 'conversations.jsonl'}").collection
    run = TrainingRun(turns, tmp_path / "out", "embedded:base", best=pl.read_ndjson(folder / "rewrites.jsonl"))
    assert run.data_hash == embedded.REWRITER_ADAPTER.about["data"]
