"""Adapters made one: exact where the rank suffices, near it where it does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("safetensors")

from safetensors.numpy import save_file
from training.reader import mix

from ragworth.llm.local.adapter import Adapter
from training import join

RANK = 4


def adapter(path: Path, seed: int, rank: int = RANK) -> Adapter:
    """Of the rank 4 as it is written, but only the first so many of them are more than nothing."""
    draw = np.random.default_rng(seed)
    made = {}
    for name, (out, into) in {"a": (24, 32), "b": (16, 24)}.items():
        made[f"{name}.up"] = draw.integers(-127, 128, (out, RANK)).astype(np.int8)
        made[f"{name}.down"] = draw.integers(-127, 128, (RANK, into)).astype(np.int8)
        made[f"{name}.scale"] = (draw.random(RANK) * 1e-4 * (np.arange(RANK) < rank)).astype(np.float32)
    save_file(made, path, metadata={"rank": str(RANK), "base": "tiny", "seed": str(seed)})
    return Adapter(path)


def far(found: Adapter, expected: dict[str, Any]) -> float:
    """How far the changes are from what was expected, as a share of that."""
    parts = found.deltas()
    apart = sum(float(np.square(parts[name] - value).sum()) for name, value in expected.items())
    return float(np.sqrt(apart / sum(float(np.square(value).sum()) for value in expected.values())))


def test_the_sum_of_thin_ones_is_exact_but_for_eight_bits(tmp_path: Path) -> None:
    one, two = adapter(tmp_path / "1", 1, rank=2), adapter(tmp_path / "2", 2, rank=2)
    shares = ["--shares", "0.2", "0.6", "--rank", "4"]
    mix.main([str(one.path), str(two.path), "-o", str(tmp_path / "sum"), *shares])
    mix.main([str(one.path), "--shares", "1", "--rank", "2", "-o", str(tmp_path / "thin")])
    assert far(Adapter(tmp_path / "thin"), one.deltas()) < 0.02  # it has no more than two ranks
    assert Adapter(tmp_path / "thin").about["rank"] == "2"
    expected = {name: 0.2 * one.deltas()[name] + 0.6 * two.deltas()[name] for name in one.deltas()}
    found = Adapter(tmp_path / "sum")
    assert far(found, expected) < 0.02
    assert dict(found.about) == {
        "rank": "4",
        "base": "tiny",
        "shares": "0.2 0.6",
    }


def test_where_the_rank_does_not_suffice_the_best_of_it_is_kept(tmp_path: Path) -> None:
    both = [adapter(tmp_path / "1", 1), adapter(tmp_path / "2", 2)]
    mix.main(
        [*(str(each.path) for each in both), "-o", str(tmp_path / "mean"), "--shares", "0.5", "0.5", "--rank", "4"]
    )
    mean = {name: sum(each.deltas()[name] for each in both) / 2 for name in both[0].deltas()}
    lost = 0.0
    for value in mean.values():
        lost += float(np.square(np.linalg.svd(value)[1][RANK:]).sum())
    best = np.sqrt(lost / sum(float(np.square(value).sum()) for value in mean.values()))
    found = Adapter(tmp_path / "mean")
    assert best > 0.1
    assert far(found, mean) == pytest.approx(best, rel=0.02)


def test_adapters_in_one_file_stay_as_they_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = adapter(tmp_path / "1", 1), adapter(tmp_path / "2", 2)
    output = tmp_path / "both.safetensors"
    join.main([f"first={one.path}", f"second={two.path}", "-o", str(output)])
    for part, alone in (("first", one), ("second", two)):
        found = Adapter(output, part)
        assert (found.digest, dict(found.about)) == (alone.digest, dict(alone.about))
    assert f"{output.stat().st_size:,} bytes" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        join.main(["first=", "-o", str(output)])
    assert "is not NAME=FILE" in capsys.readouterr().err
