"""The pytest plug-in: a stored baseline, and a failure with the table."""

from __future__ import annotations

from pathlib import Path

import pytest

GATE = '''
import ragworth
import polars as pl
from pathlib import Path


def evaluated(shift):
    """40 queries with two passages each; ``shift`` puts the relevant one second."""
    qrels = "".join(f"q{n} 0 good{n} 1\\n" for n in range(40))
    lines = "".join(
        f"q{n} Q0 {name}{n} {rank} {3 - rank} run\\n"
        for n in range(40)
        for rank, name in enumerate(("bad", "good") if n < shift else ("good", "bad"), 1)
    )
    folder = Path(__file__).parent / "gate"
    folder.mkdir(exist_ok=True)
    (folder / "qrels.txt").write_text(qrels)
    (folder / "one.run").write_text(lines)
    (folder / "ragworth.toml").write_text(
        'title = "Gate"\\n[collection]\\nqrels = "qrels.txt"\\n[systems]\\none = {run = "one.run"}\\n'
        '[metrics]\\nuse = ["RR@5", "P@2"]\\n'
    )
    return ragworth.evaluate(folder)


def test_gate(ragworth_baseline):
    shift = int((Path(__file__).parent / "shift").read_text())
    ragworth_baseline.check(evaluated(shift), NAMES)
'''


def run(folder: Path, shift: int, *options: str, names: str = '"RR@5"') -> int:
    """Run pytest in this process, in which nothing is drawn."""
    (folder / "test_gate.py").write_text(GATE.replace("NAMES", names))
    (folder / "shift").write_text(str(shift))
    (folder / "pytest.ini").write_text("[pytest]\n")
    # The entry point of an installed ragworth is the same module, which can't be loaded twice.
    plugins = ("no:ragworth", "ragworth.pytest_plugin", "no:cacheprovider", "no:xdist")
    chosen = [part for plugin in plugins for part in ("-p", plugin)]
    return pytest.main(["-q", "-s", "--import-mode=importlib", *chosen, *options, str(folder)])


@pytest.mark.slow
def test_a_baseline_is_stored_and_a_loss_fails_with_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    assert run(tmp_path, 0, "--ragworth-update") == 0
    assert (tmp_path / "ragworth-baseline" / "test_gate-test_gate" / "manifest.json").is_file()
    assert run(tmp_path, 1, names='"RR@5", "P@2"') == 0
    capsys.readouterr()
    assert run(tmp_path, 30) == 1
    shown = capsys.readouterr().out
    assert "significantly worse than the baseline by RR@5" in shown
    assert "now/one" in shown and "-0.375" in shown
    assert "Traceback" not in shown


def test_missing_values_fail(tmp_path: Path) -> None:
    from ragworth.pytest_plugin import BaselineGate

    BaselineGate(tmp_path / "base", update=True).check(_results(0), "correct")
    gate = BaselineGate(tmp_path / "base")
    gate.check(_results(1), "correct")
    with pytest.raises(
        pytest.fail.Exception, match="too few values of the same queries as in the baseline for correct"
    ):
        gate.check(_results(15), "correct")


def test_a_system_that_is_gone_fails(tmp_path: Path) -> None:
    from ragworth.pytest_plugin import BaselineGate
    from tests.report.page.small_samples import results

    old, new = (results(["P@2"], {(name, f"q{n}"): 1.0 for name in names for n in range(9)}) for names in ("ab", "a"))
    BaselineGate(tmp_path / "base", update=True).check(old, "correct")
    with pytest.raises(pytest.fail.Exception, match="the baseline has b, and the evaluation hasn't"):
        BaselineGate(tmp_path / "base").check(new, "correct")


def test_what_is_no_evaluation_is_an_error(tmp_path: Path) -> None:
    from ragworth.pytest_plugin import BaselineGate

    with pytest.raises(TypeError, match="pass an evaluation"):
        BaselineGate(tmp_path).check({"not": "results"}, "correct")
    with pytest.raises(pytest.fail.Exception, match="name at least one"):
        BaselineGate(tmp_path).check(_empty_results())
    with pytest.raises(pytest.fail.Exception, match="run pytest --ragworth-update and commit it"):
        BaselineGate(tmp_path).check(_empty_results(), "correct")


def _empty_results() -> object:
    from ragworth.results import Results

    return object.__new__(Results)


def _results(undecided: int) -> object:
    from tests.report.page.small_samples import results

    grades = {("one", f"q{n}"): None if n < undecided else 1.0 for n in range(20)}
    return results(["P@2"], grades)
