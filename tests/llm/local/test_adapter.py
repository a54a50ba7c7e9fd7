"""Adapters: their files, refused where damaged or hostile, and the one that ships."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ragworth.core.errors import ModelError
from ragworth.llm.embedded import ADAPTER_FILE, READER_ADAPTER, REWRITER_ADAPTER
from ragworth.llm.local.adapter import Adapter, read_safetensors
from tests.llm.local.made_safetensors import packed, write

random = np.random.default_rng(1)
ARRAYS: dict[str, Any] = {
    "a": random.standard_normal((3, 5)).astype(np.float32),
    "b": random.standard_normal((7,)).astype(np.float16),
    "c": random.standard_normal((2, 3, 4)).astype(np.float16),
    "none": np.zeros((0, 4), np.float32),
    "one": np.array(2.5, np.float32),
}


def test_arrays_are_read_in_single_precision_with_the_metadata(tmp_path: Path) -> None:
    theirs = pytest.importorskip("safetensors.numpy")
    path = tmp_path / "x.safetensors"
    theirs.save_file(ARRAYS, path, metadata={"rank": "16", "ü": "→"})
    found = read_safetensors(path)
    assert found.about == {"rank": "16", "ü": "→"}
    assert set(found.arrays) == set(ARRAYS)
    for name, array in found.arrays.items():
        assert array.dtype == np.float32
        np.testing.assert_array_equal(array, ARRAYS[name].astype(np.float32), err_msg=name)


def fact(**other: Any) -> dict[str, Any]:
    return {"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8], **other}}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"short",
        packed(b"{}")[:-1],
        packed(b"not JSON" * 4, bytes(8)),
        packed(b"[" * 100_000, bytes(8)),
        packed({"x": 3}, bytes(8)),
        packed({"x": {"dtype": "F32"}}, bytes(8)),
        packed({"__metadata__": "words"}, bytes(8)),
        packed({**fact(), "y": fact()["x"]}, bytes(8)),
        packed(fact(data_offsets=[8, 16]), bytes(16)),
        packed(fact(), bytes(9)),
        packed(fact(dtype="BF16"), bytes(8)),
        packed(fact(shape=[3]), bytes(8)),
        packed(fact(shape=[-1]), bytes(8)),
        packed(fact(shape=[1 << 70]), bytes(8)),
        packed(fact(data_offsets=[-8, 8]), bytes(8)),
        packed(fact(data_offsets=[4, 12]), bytes(8)),
        packed(fact(), bytes(7)),
    ],
)
def test_damaged_and_hostile_files_are_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.safetensors"
    path.write_bytes(content)
    with pytest.raises(ModelError, match="cannot be read as safetensors") as error:
        read_safetensors(path)
    assert error.value.file == str(path)


def test_differences_are_the_products_of_the_pairs(tmp_path: Path) -> None:
    down, up = np.array([[1, 2, 3]], np.float16), np.array([[0.5], [-2]], np.float16)
    adapter = Adapter(write(tmp_path / "x", {"m.q.up": up, "m.q.down": down}, {"temperature": "1.5"}))
    (name, delta), *more = adapter.deltas().items()
    assert (name, more) == ("m.q.weight", [])
    np.testing.assert_array_equal(delta, [[0.5, 1.0, 1.5], [-2.0, -4.0, -6.0]])
    assert delta.dtype == np.float32
    assert adapter.about["temperature"] == "1.5"


def test_a_file_can_hold_several(tmp_path: Path) -> None:
    one, two = ({"m.down": np.full((1, 2), x, np.float16), "m.up": np.ones((3, 1), np.float16)} for x in (1, 2))
    alone = Adapter(write(tmp_path / "one", one, {"temperature": "1.5"}))
    both = {f"{part}/{name}": array for part, pair in (("a", one), ("b", two)) for name, array in pair.items()}
    path = write(tmp_path / "both", both, {"a/temperature": "1.5", "b/prompt": "x"})
    first, second = Adapter(path, "a"), Adapter(path, "b")
    assert (first.digest, dict(first.about)) == (alone.digest, {"temperature": "1.5"})
    assert second.digest != first.digest and dict(second.about) == {"prompt": "x"}
    np.testing.assert_array_equal(second.deltas()["m.weight"], 2 * first.deltas()["m.weight"])
    with pytest.raises(ModelError, match="it has no adapter 'c'"):
        Adapter(path, "c").deltas()


@pytest.mark.parametrize("names", [[], ["m.down"], ["m.up"], ["m.down", "m.up", "n.up"], ["m.down", "m.up", "m.bias"]])
def test_what_is_no_adapter_is_refused(tmp_path: Path, names: list[str]) -> None:
    path = write(tmp_path / "x", dict.fromkeys(names, np.ones((2, 2), np.float16)), {"a": "b"})
    with pytest.raises(ModelError, match="it is not an adapter"):
        Adapter(path).deltas()


@pytest.mark.parametrize("shape", [(2,), (3, 4), (1, 2, 4)])
def test_pairs_that_do_not_fit_are_refused(tmp_path: Path, shape: tuple[int, ...]) -> None:
    arrays = {"m.up": np.ones((5, 2), np.float16), "m.down": np.ones(shape, np.float16)}
    with pytest.raises(ModelError, match="its matrices of m do not fit"):
        Adapter(write(tmp_path / "x", arrays)).deltas()


def test_the_adapters_that_ship() -> None:
    """Seven matrices in each of 30 layers, each as two thin ones in 8 bits, and their scale."""
    assert ADAPTER_FILE.stat().st_size <= 10_000_000
    assert 0.5 < float(READER_ADAPTER.about["temperature"]) < 3
    assert 0.5 <= sum(map(float, READER_ADAPTER.about["shares"].split())) <= 1
    found = read_safetensors(ADAPTER_FILE).arrays
    assert all(np.isfinite(array).all() for array in found.values())
    assert len(found) == 2 * 7 * 30 * 3
    for part, rank in (("reader", 24), ("rewriter", 8)):
        thin = {name: array for name, array in found.items() if name.startswith(f"{part}/")}
        assert {array.shape[0] for name, array in thin.items() if name.endswith((".down", ".scale"))} == {rank}
        assert thin[f"{part}/model.layers.29.mlp.down_proj.down"].shape == (rank, 1536)
    assert len(READER_ADAPTER.deltas()) == len(REWRITER_ADAPTER.deltas()) == 7 * 30
