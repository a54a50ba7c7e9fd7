"""What a stage made, read back: damaged tables are made again, whatever their digests say."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import polars as pl

from ragworth.evaluation.stage_cache import StageCache, StageResult


def test_a_damaged_table_with_the_right_digest_is_made_again(tmp_path: Path) -> None:
    times: list[int] = []

    def make() -> StageResult:
        times.append(1)
        return StageResult({"rows": pl.DataFrame({"query": ["q1", "q2"], "value": [1.0, 2.0]})})

    kept = StageCache(tmp_path)
    assert kept.of("stage", {}, make).fresh
    assert not kept.of("stage", {}, make).fresh
    (file,) = tmp_path.glob("stage-*/rows.parquet")
    damaged = file.read_bytes()[:-8] + b"\xff\xff\xff\x7fPAR1"
    file.write_bytes(damaged)
    digests = json.loads((file.parent / "files.json").read_text())
    digests[file.name] = [len(damaged), sha256(damaged).hexdigest()]
    (file.parent / "files.json").write_text(json.dumps(digests))
    assert kept.of("stage", {}, make).frames["rows"].height == 2
    assert len(times) == 2
