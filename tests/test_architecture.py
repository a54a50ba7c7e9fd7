"""The house rules that a machine can check: imports go down only, and importing is cheap."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

import ragworth

ROOT = Path(ragworth.__file__).parent

# From the bottom up. A package may import from its own layer and from the layers below it.
LAYERS: list[set[str]] = [
    {"core"},
    {"data", "stats"},
    {"llm", "formats"},
    {"calls", "metrics", "interop", "workspace"},
    {
        "text_match",
        "answer_outcomes",
        "comparison",
        "scoring",
        "score_rows",
        "results",
        "exports",
    },
    {
        "judging",
        "retrieval",
        "two_judges",
        "diagnosis",
        "report",
    },
    {"evaluation", "fitting", "prediction"},
    {"studies", "build", "rewriting", "label"},
    {"cli", "__main__", "pytest_plugin"},
]
LAYER = {package: number for number, packages in enumerate(LAYERS) for package in packages}
MUTUAL = (
    # A study runs on a bench, which makes its cases.
    {f"studies.{name}" for name in ("bench", "contract", "cases", "run")},
)
"""Modules that may import each other."""


def modules() -> list[Path]:
    return sorted(p for p in ROOT.rglob("*.py") if p != ROOT / "__init__.py")


class Contents(NamedTuple):
    """What the tests look at in a file: imports anywhere in it, its own classes, and whether it prints."""

    imports: list[ast.Import | ast.ImportFrom]
    classes: list[str]
    prints: bool


@cache
def contents(path: Path) -> Contents:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    return Contents(
        [node for node in statements(tree) if isinstance(node, ast.Import | ast.ImportFrom)],
        [node.name for node in tree.body if isinstance(node, ast.ClassDef)],
        "print(" in text and any(getattr(node, "id", "") == "print" for node in ast.walk(tree)),
    )


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """The statements in a block and in the blocks within it: walking through all expressions would take seconds."""
    for name in ("body", "orelse", "finalbody", "handlers", "cases"):
        for each in getattr(node, name, ()):
            yield each
            yield from statements(each)


def package_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def module_of(path: Path) -> str:
    return ".".join(("ragworth", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")


def imported_modules(path: Path) -> Iterator[str]:
    """Everything of ragworth that a file imports, late imports and those for types included."""
    for node in contents(path).imports:
        if isinstance(node, ast.ImportFrom) and node.level == 0 and (node.module or "").split(".")[0] == "ragworth":
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in FILES else str(node.module)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "ragworth")


FILES = {module_of(path): path for path in modules()}


def imported_packages(path: Path) -> Iterator[str]:
    for name in imported_modules(path):
        if "." in name:
            yield name.split(".")[1]


def test_imports_go_down_only() -> None:
    packages = {package_of(path) for path in modules()}
    assert packages <= LAYER.keys(), f"{sorted(packages - LAYER.keys())} have no layer: add them to LAYERS"
    wrong = [
        f"{path.relative_to(ROOT)} is in layer {LAYER[package_of(path)]} and imports {other}"
        for path in modules()
        for other in imported_packages(path)
        if LAYER[other] > LAYER[package_of(path)]
    ]
    assert wrong == []


def cycles(graph: dict[str, set[str]], known: set[frozenset[str]]) -> list[list[str]]:
    """Import cycles, apart from those within one of the known groups."""
    graph = {
        node: {other for other in others if not any({node, other} <= group for group in known)}
        for node, others in graph.items()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return [error.args[1]]
    return []


def test_no_package_imports_itself_by_way_of_another() -> None:
    graph = {package: set[str]() for package in LAYER}
    for path in modules():
        graph[package_of(path)] |= set(imported_packages(path)) - {package_of(path)}
    assert cycles(graph, set()) == []


def test_no_module_imports_itself_by_way_of_another() -> None:
    graph = {name: set(imported_modules(path)) & set(FILES) - {name} for name, path in FILES.items()}
    known = {frozenset(f"ragworth.{name}" for name in group) for group in MUTUAL}
    assert cycles(graph, known) == []


@pytest.mark.parametrize("package", ["metrics", "stats"])
def test_metrics_and_statistics_know_no_files_and_no_models(package: str) -> None:
    allowed = {"core", "data", package}
    for path in (ROOT / package).rglob("*.py"):
        assert set(imported_packages(path)) <= allowed, path


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_importing_the_package_pulls_in_nothing_heavy() -> None:
    heavy = run(
        "import sys, ragworth; "
        "heavy = ('polars', 'numpy', 'scipy', 'click', 'torch', 'aiohttp', 'sqlite3', 'jinja2'); "
        "print([m for m in heavy if m in sys.modules])"
    )
    assert heavy.strip() == "[]"


def test_help_pulls_in_nothing_heavy() -> None:
    code = (
        "import sys\nfrom click.testing import CliRunner\nfrom ragworth.cli import main\n"
        "assert 'Commands' in CliRunner().invoke(main, ['--help']).output\n"
        "heavy = ('polars', 'numpy', 'scipy', 'torch', 'matplotlib', 'pandas', 'pydantic', 'jinja2')\n"
        "print([m for m in heavy if m in sys.modules])"
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
        "print([m for m in ('torch','transformers','onnxruntime','aiohttp','polars') if m in sys.modules])"
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
        found = contents(path)
        assert not found.prints, path
        assert not {"pickle", "dill", "joblib"} & {
            alias.name for node in found.imports if isinstance(node, ast.Import) for alias in node.names
        }, path


SECOND_NAME = "a folder that is moved into place as a whole"
SCRATCH = "a temporary folder"
DIRECT_WRITERS = {
    "core.files": "the helper",
    "data.coercion": "the caller's stream",
    "cli.process": "the null device",
    "evaluation.stage_cache": SECOND_NAME,
    "llm.local.onnx_build": SECOND_NAME,
    "llm.local.onnx_model": SECOND_NAME,
    "retrieval.artifacts": SECOND_NAME,
    "retrieval.encoders.bert_graph": SECOND_NAME,
    "formats.files": SCRATCH,
    "label.site.views.managing": SCRATCH,
}
"""Modules that write files without `ragworth.core.files`, and why they may."""


def writes_directly(call: ast.Call) -> bool:
    """Return whether a call writes to a path; streams are called ``stream`` or ``file`` in the whole tree."""
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    given = [*call.args, *(each.value for each in call.keywords)]
    if {"stream", "file"} & {getattr(each, "attr", getattr(each, "id", "")) for each in given}:
        return False
    if name == "open":
        return any(getattr(each, "value", "") in ("w", "wb", "a", "ab", "x", "xb") for each in given)
    if name in ("write_csv", "write_parquet", "write_ndjson", "write_json", "sink_parquet", "sink_csv", "sink_ndjson"):
        return isinstance(call.func, ast.Attribute) and bool(given)  # else it is `spreadsheet.write_csv`: bytes
    return name in ("write_text", "write_bytes")


def test_one_helper_opens_every_output_path() -> None:
    direct = set()
    for name, path in FILES.items():
        text = path.read_text(encoding="utf-8")
        if any(word in text for word in ("open(", "write_", "sink_")):
            calls = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call))
            direct |= {name.removeprefix("ragworth.") for call in calls if writes_directly(call)}
    assert direct == set(DIRECT_WRITERS)


def test_no_two_classes_have_the_same_name() -> None:
    found: dict[str, list[str]] = {}
    for name, path in FILES.items():
        for own in contents(path).classes:
            found.setdefault(own, []).append(name)
    assert {name: places for name, places in found.items() if len(places) > 1} == {}
