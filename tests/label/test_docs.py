"""The snippets in docs/labelling.md."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragworth.label.labels import Label, Labels

PAGE = Path(__file__).parents[2] / "docs" / "labelling.md"


def test_seconds_are_grouped_by_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [("anna", "i1", "yes", 4.0), ("anna", "i2", "no", 9.0), ("ben", "i1", "yes", 6.0)]
    (tmp_path / "out").mkdir()
    labels = Labels(Label(who, item, {"grade": said}, seconds=seconds) for who, item, said, seconds in given)
    labels.write(tmp_path / "out" / "labels.parquet")
    monkeypatch.chdir(tmp_path)
    after = PAGE.read_text(encoding="utf-8").partition("by answer rather than by person")[2]
    exec(after.partition("```python\n")[2].partition("```")[0], {})
    lines = [line for line in capsys.readouterr().out.splitlines() if "grade" in line]
    rows = [[cell.strip() for cell in line.split("┆")] for line in lines]
    assert sorted(cells[1] for cells in rows) == ["1", "2"]
    assert any("yes" in cells[0] and cells[2].startswith("5.0") for cells in rows)
