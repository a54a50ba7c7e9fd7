"""Which tests `make test` runs: markers, extras and the Makefile agree, and every test that needs more is marked."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from packaging.requirements import Requirement  # comes with pytest

from tests.conftest import Save, pytest_collection_modifyitems
from tests.tiers import FIXTURES, PACKAGES, is_deselected

ROOT = Path(__file__).parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
MARKERS = [line.partition(":")[0] for line in PROJECT["tool"]["pytest"]["ini_options"]["markers"]]
COMPARED = {"haystack", "ir_datasets", "langchain_core", "llama_index.core", "pyterrier"}
"""Packages that ragworth works with. `make test` installs none of them; tests that compare with them are skipped."""
DISTRIBUTIONS = {
    "PyStemmer": "Stemmer",
    "PyYAML": "yaml",
    "bert-score": "bert_score",
    "faiss-cpu": "faiss",
    "pytrec-eval-terrier": "pytrec_eval",
    "rouge-score": "rouge_score",
    "scikit-learn": "sklearn",
    "sentence-transformers": "sentence_transformers",
    "vl-convert-python": "vl_convert",
}
"""Distribution → module, where the names differ."""


class Need(NamedTuple):
    """A package that a test file imports, and the markers of the test or file that imports it."""

    package: str
    place: str
    markers: frozenset[str]


def installed(*extras: str) -> set[str]:
    """The modules that extras name, with the extras they include."""
    modules = set()
    for requirement in (
        Requirement(text) for extra in extras for text in PROJECT["project"]["optional-dependencies"][extra]
    ):
        if requirement.name == "ragworth":
            modules |= installed(*requirement.extras)
        else:
            modules.add(DISTRIBUTIONS.get(requirement.name, requirement.name))
    return modules


def marks(nodes: list[ast.expr]) -> set[str]:
    return {name for node in nodes for name in re.findall(r"pytest\.mark\.(\w+)", ast.unparse(node))}


def skipped(node: ast.AST) -> Iterator[str]:
    """The packages without which a call skips a test."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "importorskip":
        yield from (str(name.value) for name in node.args if isinstance(name, ast.Constant))


def imported(node: ast.AST) -> Iterator[str]:
    """The packages that code imports or skips a test without."""
    for each in ast.walk(node):
        yield from skipped(each)
        if isinstance(each, ast.Import):
            yield from (name.name for name in each.names)
        elif isinstance(each, ast.ImportFrom) and each.module:
            yield each.module


def needs(path: Path) -> Iterator[Need]:
    """What a test file imports outside of fixtures and helpers."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assigned = [node for node in tree.body if isinstance(node, ast.Assign)]
    whole = marks([node.value for node in assigned if ast.unparse(node.targets[0]) == "pytestmark"])
    for node in tree.body:
        markers = set(whole)
        if isinstance(node, ast.FunctionDef):
            if not node.name.startswith("test_"):
                continue
            markers |= marks(node.decorator_list) | {FIXTURES.get(argument.arg, "") for argument in node.args.args}
        place = f"{path.relative_to(ROOT)}:{node.lineno}"
        yield from (Need(package, place, frozenset(markers)) for package in imported(node))


@cache
def heavy_needs() -> list[Need]:
    """The packages of markers that test files import; files that name none of them aren't parsed."""
    heavy = re.compile(rf"\b(?:{'|'.join(name for names in PACKAGES.values() for name in names)})\b")
    paths = sorted((ROOT / "tests").rglob("test_*.py"))
    return [need for path in paths if heavy.search(path.read_text(encoding="utf-8")) for need in needs(path)]


def test_make_test_deselects_every_marker() -> None:
    (others,) = re.findall(r"^OTHERS := (.*)$", MAKEFILE, re.MULTILINE)
    assert others.split(" or ") == MARKERS
    assert {*PACKAGES, *FIXTURES.values()} <= set(MARKERS)


def test_make_test_installs_nothing_that_a_marker_needs() -> None:
    heavy = {package for packages in PACKAGES.values() for package in packages}
    assert not installed("test") & heavy
    assert {"torch", "transformers", "sentence_transformers", "faiss", "selenium"} <= installed("dev") & heavy
    (recipe,) = re.findall(r"^\$\(VENV\)/test: \$\(VENV\)/core\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)
    assert re.findall(r'-e "\.\[(.*?)\]"', recipe) == ["test"]
    assert "torch" not in recipe


@pytest.mark.parametrize("marker", PACKAGES)
def test_a_test_that_imports_a_heavy_package_is_marked(marker: str) -> None:
    found = [need for need in heavy_needs() if need.package.partition(".")[0] in PACKAGES[marker]]
    assert [need for need in found if marker not in need.markers] == []


def test_only_other_libraries_are_skipped_without_a_marker() -> None:
    """In `make test`, a test is skipped without a marker only if it compares with a package that few people have."""
    texts = (path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*.py"))
    found = {name for text in texts for name in re.findall(r'importorskip\("([\w.]+)"', text)}
    known = installed("test") | {package for packages in PACKAGES.values() for package in packages} | {"ir_measures"}
    assert {name for name in found if name.partition(".")[0] not in known} == COMPARED


class Item:
    """A collected test, as far as the hook looks at it."""

    def __init__(self, *fixtures: str, markers: tuple[str, ...] = ()) -> None:
        self.fixturenames = fixtures
        self.markers: list[Any] = list(markers)

    def iter_markers(self) -> Iterator[SimpleNamespace]:
        return (SimpleNamespace(name=name) for name in self.markers)

    def add_marker(self, marker: object) -> None:
        self.markers.append(marker)


def test_fixtures_mark_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.conftest.missing_package", lambda marker: None)
    plain, real, page = Item("tmp_path"), Item("data", "tmp_path"), Item("browser")
    pytest_collection_modifyitems([plain, real, page])  # type: ignore[list-item]
    assert (plain.markers, real.markers, page.markers) == ([], ["real"], ["browser"])


def test_a_marked_test_is_skipped_without_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.conftest.missing_package", {"torch": "torch"}.get)
    marked, other = Item(markers=("torch",)), Item(markers=("model",))
    pytest_collection_modifyitems([marked, other])  # type: ignore[list-item]
    assert other.markers == ["model"]
    assert marked.markers[1].mark.name == "skip"
    assert marked.markers[1].mark.kwargs["reason"] == "marked torch: torch is not installed (make test-all installs it)"


@pytest.mark.parametrize(
    ("marks", "expression", "deselected"),
    [
        ("pytest.mark.torch", "not (torch or slow)", True),
        ("[\n    pytest.mark.usefixtures('a'),\n    pytest.mark.slow,  # why\n]", "not (torch or slow)", True),
        ("pytest.mark.model", "not (torch or slow)", False),
        ("pytest.mark.usefixtures('whole_report')\npytest.mark.slow", "not (torch or slow)", False),
        ("pytest.mark.torch", "not (torch and slow)", False),
        ("pytest.mark.torch", "torch", False),
        ("pytest.mark.torch", "", False),
    ],
)
def test_a_file_is_left_out_if_all_its_tests_are(save: Save, marks: str, expression: str, deselected: bool) -> None:
    path = save("test_a.py", f"import pytest\n\npytestmark = {marks}\n")
    assert is_deselected(path, expression) == deselected


def test_a_submission_runs_the_readme_commands_first_each_in_its_own_environment() -> None:
    readme = re.findall(r"^make ([\w-]+)", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    (removed,) = re.findall(r"^rm -rf (.*)$", script, re.MULTILINE)
    commands = re.findall(r"^make ([\w-]+)(?: VENV=(\S+))?$", script, re.MULTILINE)
    assert [name for name, _ in commands] == [*readme, "test-others", "check"]
    assert [environment for _, environment in commands] == [*removed.split(), "", ""]


def test_everything_runs_at_full_strength() -> None:
    (every,) = re.findall(r"^test-all: .*\n\t(.*)$", MAKEFILE, re.MULTILINE)
    assert "-m " not in every
    assert "quick" not in every.lower()


def test_every_test_runs_with_the_others_or_before() -> None:
    (others,) = re.findall(r"^test-others: .*\n\t(.*)$", MAKEFILE, re.MULTILINE)
    assert '-m "$(OTHERS) or hypothesis"' in others
    assert "quick" not in others.lower()


def test_the_guide_names_files_and_markers_that_exist() -> None:
    text = (ROOT / "tests" / "README.md").read_text(encoding="utf-8")
    places = [ROOT, ROOT / "tests", ROOT / "src" / "ragworth"]
    files = re.findall(r"`([\w/]+\.py)`", text)
    assert [name for name in files if not any((place / name).exists() for place in places)] == []
    assert re.findall(r"^\| `(\w+)` \| .* \| (?:by hand|the fixture)", text, re.MULTILINE) == MARKERS
