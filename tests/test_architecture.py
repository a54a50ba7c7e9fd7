"""The house rules that a machine can check: imports go down only, and importing is cheap."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import ragworth

ROOT = Path(ragworth.__file__).parent

# From the ground up. A module may import from its own room and from the floors below it.
FLOORS: list[set[str]] = [
    {"errors", "interrupts"},
    {"storage"},
    {"resources", "registry", "limits", "doors", "ordering", "parts", "duplicates", "config"},
    {"parquet"},
    {"schema"},
    {"tables"},
    {"collection"},
    {"formats", "llm"},
    {"metrics", "stats", "prompts", "executors"},
    {"interop", "comparison", "calls"},
    {"scoring", "asking", "judging", "results"},
    {"diagnosis", "budgeting"},
    {"answers"},
    {"annotate"},
    {"retrieval"},
    {"report"},
    {"evaluation", "starting", "learning"},
    {"studies"},
    {"cli"},
    {"__main__"},
]
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}


def modules() -> list[Path]:
    return sorted(p for p in ROOT.rglob("*.py") if p != ROOT / "__init__.py")


def room_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported_rooms(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module == "ragworth":
            names = [f"ragworth.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [node.module or ""]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            parts = name.split(".")
            if parts[0] == "ragworth" and len(parts) > 1 and parts[1] != "__version__":
                yield parts[1]


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_go_down_only(path: Path) -> None:
    room = room_of(path)
    assert room in FLOOR, f"{room} has no floor: say where it belongs"
    wrong = {other for other in imported_rooms(path) if other != room and FLOOR[other] >= FLOOR[room]}
    assert not wrong, f"{path.name} is on floor {FLOOR[room]} and imports {wrong}"


@pytest.mark.parametrize("room", ["metrics", "stats"])
def test_metrics_and_statistics_know_no_files_and_no_models(room: str) -> None:
    allowed = {"errors", "registry", "doors", "ordering", "parts", "duplicates", "schema", "tables", room}
    for path in (ROOT / room).rglob("*.py"):
        assert set(imported_rooms(path)) <= allowed, path


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_importing_the_package_pulls_in_nothing_heavy() -> None:
    heavy = run(
        "import sys, ragworth; "
        "print([m for m in ('polars', 'numpy', 'scipy', 'click', 'torch', 'h11', 'sqlite3') if m in sys.modules])"
    )
    assert heavy.strip() == "[]"


def test_help_pulls_in_nothing_heavy() -> None:
    code = (
        "import sys\nfrom click.testing import CliRunner\nfrom ragworth.cli import main\n"
        "assert 'Commands' in CliRunner().invoke(main, ['--help']).output\n"
        "print([m for m in ('polars','numpy','scipy','torch','matplotlib','pandas') if m in sys.modules])"
    )
    assert run(code).strip() == "[]"


def test_scoring_imports_neither_torch_nor_plots_nor_pandas() -> None:
    code = (
        "import sys, ragworth\nragworth.summarise(ragworth.score({'q': {'d': 1.0}}, {'q': {'d': 1}}))\n"
        "print([m for m in ('torch','matplotlib','pandas','pyarrow','ir_measures','ir_datasets') if m in sys.modules])"
    )
    assert run(code).strip() == "[]"


def test_asking_a_stored_answer_loads_no_model_library(tmp_path: Path) -> None:
    code = (
        "import sys, ragworth\nfrom ragworth.llm.scripted import Scripted\n"
        "ragworth.ask(Scripted({'*': 'yes'}), [ragworth.Generate(ragworth.Prompt.chat('Is it?'))], sys.argv[1])\n"
        "print([m for m in ('torch','transformers','onnxruntime','h11','polars') if m in sys.modules])"
    )
    arguments = [sys.executable, "-c", code, str(tmp_path / "calls.sqlite")]
    for _ in range(2):
        assert subprocess.run(arguments, capture_output=True, text=True, check=True).stdout.strip() == "[]"


def test_every_public_name_exists_and_unknown_ones_do_not() -> None:
    for name in ragworth.__all__:
        assert getattr(ragworth, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = ragworth.nonsense
    assert dir(ragworth) == sorted(ragworth.__all__)


def test_no_print_and_no_pickle_in_the_library() -> None:
    for path in modules():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        calls = {n.func.id for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
        assert "print" not in calls, path
        assert not {"pickle", "dill", "joblib"} & {
            alias.name for n in ast.walk(tree) if isinstance(n, ast.Import) for alias in n.names
        }, path
