"""The files around the code are right: generated pages, links, site, workflows, guides, pins, markers, CI jobs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import figures
import pytest
import yaml
from packaging.requirements import Requirement  # comes with pytest
from packaging.utils import canonicalize_name

import ragworth
from ragworth.metrics import METRICS
from ragworth.metrics.declaration import Declaration
from tests.conftest import Save
from tests.metrics.cases import answers, shown
from tests.metrics.test_hand_worked import KNOWN
from tests.tiers import FIXTURES, PACKAGES, is_deselected

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "ragworth"
FOLDERS = ("docs", "benchmarks", "examples", "src", "tests", "training")
PAGES = sorted([*ROOT.glob("*.md"), *(path for name in FOLDERS for path in (ROOT / name).rglob("*.md"))])
PAGES = [path for path in PAGES if "results" not in path.parts]  # of an evaluation
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

# YAML 1.1 with `on` as a word, not as a truth value; Python objects in mkdocs.yml are left alone.
Loader: Any = type("Loader", (yaml.SafeLoader,), {})
Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in pairs if tag != "tag:yaml.org,2002:bool" or first not in "oO"]
    for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda loader, suffix, node: suffix)


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def parse(path: Path) -> Any:
    return yaml.load(read(path), Loader)


# Pages: generated ones, links, navigation


@pytest.mark.parametrize("page", figures.REFERENCE)
def test_generated_pages_are_up_to_date(page: str) -> None:
    outdated = [name for name, text in figures.PAGES[page]() if read(ROOT / name) != text]
    assert not outdated, f"make figures PAGE={page}"


def site() -> ModuleType:
    spec = spec_from_file_location("docs_site", ROOT / "docs" / "site.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def pages(nav: Any) -> list[str]:
    """All pages of a navigation."""
    if isinstance(nav, str):
        return [nav]
    return [page for item in (nav.values() if isinstance(nav, dict) else nav) for page in pages(item)]


def test_the_navigation_names_every_page_once() -> None:
    named = pages(site().expand(parse(ROOT / "mkdocs.yml")["nav"]))
    assert len(named) == len(set(named))
    assert set(named) == {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}


def test_links_out_of_docs_lead_to_the_repository() -> None:
    link, address = site().link_outside, PROJECT["project"]["urls"]["Repository"]
    assert link("[a](../Makefile)", "why.md") == f"[a]({address}/blob/main/Makefile)"
    assert link("[a](../../examples/demo)", "howto/ci.md") == f"[a]({address}/tree/main/examples/demo)"
    assert link("[a](../why.md#top)", "howto/ci.md") == "[a](../why.md#top)"


def test_the_site_loads_nothing_from_elsewhere() -> None:
    settings = parse(ROOT / "mkdocs.yml")
    assert settings["theme"]["font"] is False
    # A repository address makes the theme ask GitHub for stars.
    assert not {"repo_url", "extra_css", "extra_javascript", "extra"} & settings.keys()


def slugs(page: str) -> set[str]:
    """The anchors that GitHub gives the headings of a page."""
    found: list[str] = []
    for heading in re.findall(
        r"^#+ (.+)$", re.sub(r"^```.*?^```", "", page, flags=re.MULTILINE | re.DOTALL), re.MULTILINE
    ):
        words = re.sub(r"\]\([^)]*\)", "", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        found.append(f"{slug}-{found.count(slug)}" if slug in found else slug)
    return set(found)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_link_leads_to_a_file_and_a_heading(path: Path) -> None:
    text = re.sub(r"^```.*?^```", "", read(path), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"\w+:", target):
            continue
        name, _, anchor = target.partition("#")
        other = (path.parent / name) if name else path
        assert other.exists(), target
        assert not anchor or anchor in slugs(read(other)), target


# Workflows, guides, citation


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_reads_only_and_uses_actions_of_a_fixed_version(path: Path) -> None:
    workflow = parse(path)
    assert set(workflow["permissions"].items()) <= {("contents", "read")}
    for job in workflow["jobs"].values():
        rights = set(job.get("permissions", {}).items())
        assert rights <= {("contents", "read")} or not any("run" in step for step in job["steps"])
        for step in job["steps"]:
            assert "run" in step or re.fullmatch(r"(actions|pypa)/[\w-]+@(v\d+|release/v1)", step["uses"]), step


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", "SECURITY.md", "RELEASING.md", "tests/README.md", "workflows"])
def test_guides_and_workflows_name_targets_that_exist(name: str) -> None:
    text = "\n".join(map(read, WORKFLOWS)) if name == "workflows" else read(ROOT / name)
    targets = set(re.findall(r"^([\w-]+):", read(ROOT / "Makefile"), re.MULTILINE))
    named = set(re.findall(r"(?:`|^|run: )make ([\w-]+)", text, re.MULTILINE))
    assert named <= targets


def test_the_table_of_changes_names_files_that_exist() -> None:
    _, _, section = read(ROOT / "CONTRIBUTING.md").partition("## What a change touches")
    rows = re.findall(r"^\| (\w[\w ]*?)(?: \(`ragworth\.\w+`\))? \| (.*?) \| (.*?) \|$", section, re.MULTILINE)
    assert len(rows) > 5
    for _, source, rest in rows:
        assert [path for path in re.findall(r"`([\w/.-]+)`", source) if not (PACKAGE / path).exists()] == []
        assert [path for path in re.findall(r"`([\w.-]+/[\w/.-]*)`", rest) if not (ROOT / path).exists()] == []


def test_the_citation_is_of_this_version() -> None:
    citation = parse(ROOT / "CITATION.cff")
    assert citation["version"] == PROJECT["project"]["version"] == ragworth.__version__
    assert citation["license"] == PROJECT["project"]["license"]


# Dependencies: bounded above, pinned in constraints.txt


def requirements() -> dict[str, list[Requirement]]:
    """What ``pyproject.toml`` names, by extra; what building and the package itself need has the name ``""``."""
    project = PROJECT["project"]
    groups = {"": project["dependencies"], **project["optional-dependencies"]}
    return {
        extra: [each for each in map(Requirement, texts) if each.name != "ragworth"] for extra, texts in groups.items()
    }


def test_every_dependency_ends_before_a_release_that_may_break_it() -> None:
    named = [each for some in requirements().values() for each in some]
    open_ended = {each.name for each in named if not any(bound.operator in ("<", "==") for bound in each.specifier)}
    # A new first number of these comes every few months and breaks nothing.
    assert open_ended <= {"certifi", "pyarrow", "xllamacpp"}


def test_the_pins_are_exact_and_agree_with_pyproject() -> None:
    lines = [line for line in read(ROOT / "constraints.txt").splitlines() if line and not line.startswith("#")]
    pins = {canonicalize_name(each.name): each for each in map(Requirement, lines)}
    assert len(pins) == len(lines), "a package is pinned twice"
    for pin in pins.values():
        (bound,) = pin.specifier
        assert bound.operator == "==", pin
        assert "+" not in bound.version, f"{pin}: a local version such as +cpu is of one platform"
    for requirement in [each for some in requirements().values() for each in some]:
        (bound,) = pins[canonicalize_name(requirement.name)].specifier
        assert requirement.specifier.contains(bound.version), requirement


# Markers: which tests `make test` leaves out


def test_make_test_deselects_every_marker() -> None:
    (others,) = re.findall(r"^OTHERS := (.*)$", read(ROOT / "Makefile"), re.MULTILINE)
    markers = [line.partition(":")[0] for line in PROJECT["tool"]["pytest"]["ini_options"]["markers"]]
    assert others.split(" or ") == markers
    assert {*PACKAGES, *FIXTURES.values()} <= set(markers)


@pytest.mark.parametrize(
    ("marks", "expression", "deselected"),
    [
        ("[\n    pytest.mark.usefixtures('a'),\n    pytest.mark.slow,  # why\n]", "not (torch or slow)", True),
        ("pytest.mark.model", "not (torch or slow)", False),
        ("pytest.mark.torch", "not (torch and slow)", False),
        ("pytest.mark.torch", "torch", False),
    ],
)
def test_a_file_is_left_out_if_all_its_tests_are(save: Save, marks: str, expression: str, deselected: bool) -> None:
    path = save("test_a.py", f"import pytest\n\npytestmark = {marks}\n")
    assert is_deselected(path, expression) == deselected


# "Add a metric in ten minutes"


def example(title: str) -> str:
    """A block of code in CONTRIBUTING.md, by the comment above it."""
    found = re.search(rf"<!-- example: {title} -->\n```python\n(.*?)```", read(ROOT / "CONTRIBUTING.md"), re.DOTALL)
    assert found is not None, title
    return found[1]


@pytest.fixture
def walked_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Declaration:
    """The metric of the walk-through, saved and registered as it says."""
    text = read(ROOT / "CONTRIBUTING.md")
    ((name, module, function),) = re.findall(r'^ +"(\w+)": "ragworth\.metrics\.(\w+):(\w+)",$', text, re.MULTILINE)
    assert f"`src/ragworth/metrics/{module}.py`" in text
    assert name not in METRICS, "the example is a metric now: write about another"
    (tmp_path / f"{module}.py").write_text(example("metric"), encoding="utf-8")
    monkeypatch.setattr("ragworth.metrics.__path__", [*ragworth.metrics.__path__, str(tmp_path)])
    monkeypatch.setattr(METRICS, "_targets", METRICS._targets | {name: f"ragworth.metrics.{module}:{function}"})
    monkeypatch.setattr(METRICS, "_loaded", dict(METRICS._loaded))
    declaration = METRICS.get(name)
    monkeypatch.delitem(sys.modules, f"ragworth.metrics.{module}")
    return declaration


def test_the_metric_of_the_walk_through_works(walked_through: Declaration) -> None:
    wanted: dict[str, float] = eval(f"{{{example('hand-worked value')}}}")
    for written, value in wanted.items():
        scores = ragworth.score(shown(s="abcd"), KNOWN, [written])
        assert answers(scores) == [pytest.approx(value)]
    (half,) = answers(ragworth.score(shown(s="abcd"), KNOWN, [f"{walked_through.name}(p=0.5)@2"]))
    assert half == pytest.approx(0.5 * 0.5)  # b at rank 2
    assert "empty context" in walked_through.doc


# The action and the GitLab job


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """A workspace without a model whose second system is worse, and ``ragworth`` as a command."""
    folder = tmp_path / "gate"
    folder.mkdir()
    (folder / "qrels.txt").write_text("".join(f"q{n} 0 good{n} 1\n" for n in range(40)))
    for name, order in (("one", ("good", "bad")), ("two", ("bad", "good"))):
        lines = (f"q{n} Q0 {each}{n} {k} {3 - k} x\n" for n in range(40) for k, each in enumerate(order, 1))
        (folder / f"{name}.run").write_text("".join(lines))
    (folder / "ragworth.toml").write_text(
        'title = "Gate"\n[collection]\nqrels = "qrels.txt"\n[systems]\none = {run = "one.run"}\n'
        'two = {run = "two.run"}\n[metrics]\nuse = ["RR@5"]\n'
    )
    command = tmp_path / "bin" / "ragworth"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ragworth "$@"\n')
    command.chmod(0o755)
    return folder


def run_script(text: str, folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(folder.parent / "bin"), os.environ["PATH"]])
    given = {**os.environ, "PATH": path, "CI": "1", **env}
    return subprocess.run(
        ["bash", "-e", "-c", text], check=False, capture_output=True, text=True, cwd=folder, env=given
    )


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="runs bash")
def test_the_action_evaluates_and_fails_if_worse(gate: Path) -> None:
    steps = {step.get("name"): step for step in parse(ROOT / "action.yml")["runs"]["steps"]}
    summary = gate / "summary.md"
    given = {"WORKSPACE": ".", "RESULTS": "found", "BASELINE": "", "GITHUB_STEP_SUMMARY": str(summary)}
    done = run_script(steps["Evaluate"]["run"], gate, **given)
    assert done.returncode == 0, done.stderr
    assert "# Gate" in summary.read_text()
    worse = run_script(steps["Compare"]["run"], gate, **given, NAMES="RR@5")
    assert worse.returncode == 3, worse.stdout + worse.stderr
    same = run_script(steps["Compare"]["run"], gate, **{**given, "BASELINE": "found"}, NAMES="RR@5")
    assert same.returncode == 0, same.stdout + same.stderr


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="runs bash")
def test_the_gitlab_job_evaluates_and_fails_if_worse(gate: Path) -> None:
    job = parse(ROOT / "ci" / "gitlab.yml")["ragworth"]
    script = "\n".join(line for line in job["script"] if not line.startswith("pip "))
    given = {name: str(value) for name, value in job["variables"].items()}
    assert run_script(script, gate, **given).returncode == 0
    done = run_script(script, gate, **{**given, "RAGWORTH_FAIL_IF_WORSE": "RR@5"})
    assert done.returncode == 3, done.stdout + done.stderr


@pytest.mark.skipif(os.name == "nt", reason="runs bash")
@pytest.mark.parametrize("server", ["", "llm.example"])
def test_the_action_and_the_gitlab_job_allow_the_server_that_the_pipeline_names(gate: Path, server: str) -> None:
    (gate.parent / "bin" / "ragworth").write_text('#!/bin/sh\nprintf "%s|" "$@"\necho\n')
    (gate / "report.md").touch()
    steps = {step.get("name"): step for step in parse(ROOT / "action.yml")["runs"]["steps"]}
    given = {"WORKSPACE": "a b", "RESULTS": ".", "SERVER": server, "GITHUB_STEP_SUMMARY": str(gate / "summary.md")}
    job = parse(ROOT / "ci" / "gitlab.yml")["ragworth"]
    script = "\n".join(line for line in job["script"] if not line.startswith("pip "))
    variables = {name: str(value) for name, value in job["variables"].items()}
    variables |= {"RAGWORTH_WORKSPACE": "a b", "RAGWORTH_ALLOW_SERVER": server}
    for done in (run_script(steps["Evaluate"]["run"], gate, **given), run_script(script, gate, **variables)):
        assert done.returncode == 0, done.stderr
        check, evaluate = done.stdout.splitlines()
        assert check.startswith("check|a b|--results|") and evaluate.startswith("evaluate|a b|--results|")
        assert ("--allow-server|llm.example|" in check) == bool(server)
        assert "--allow-server" not in evaluate, "it is remembered"
