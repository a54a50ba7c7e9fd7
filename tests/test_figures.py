"""Figures of the documentation: pages and scripts belong together, and what needs no model is up to date."""

from __future__ import annotations

from difflib import unified_diff
from pathlib import Path

import pytest
from figures.declare import Figure, Page
from figures.regions import MarkError, bare, regions, replaced, same, same_shape, sources, with_source
from figures.running import ROOT, Run, missing
from figures.scripts import computed, figures, owned, pages, scripted
from figures.tables import tables

PAGES = {page: figures(page) for page in scripted()}
FIGURES = [pytest.param(page, figure, id=f"{page}-{figure.name}") for page in PAGES for figure in PAGES[page].values()]
FAST = 2
"""Seconds up to which a figure is computed among the tests that everybody runs."""
LONG = 20
"""Seconds from which on it is not computed in tests at all: `make figures` does. tests/real has numbers of some."""


def timed(page: str, figure: Figure) -> object:
    marks = [pytest.mark.slow] if figure.seconds > FAST else []
    marks += [pytest.mark.real] if "data" in figure.needs else []
    return pytest.param(page, figure, id=f"{page}-{figure.name}", marks=marks)


COMPUTED = [
    timed(page, figure)
    for page in PAGES
    for figure in PAGES[page].values()
    if figure.seconds < LONG and set(figure.needs) <= {"data"}
]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return Run(tmp_path_factory.mktemp("figures"))


@pytest.mark.parametrize(("page", "figure"), COMPUTED)
def test_the_page_shows_what_is_computed_now(page: str, figure: Figure, run: Run) -> None:
    if lacking := missing(figure.needs, quick=False):
        pytest.skip(f"needs {lacking[0]}")
    old, new = owned(page, figure), {name: str(shown) for name, shown in computed(figure, run).items()}
    assert old.keys() == new.keys()
    for name in old:
        changed = "\n".join(unified_diff(old[name].splitlines(), new[name].splitlines(), "page", "now", lineterm=""))
        assert same(old[name], new[name]), f"make figures PAGE={page}\n\n{name}:\n{changed}"


@pytest.mark.parametrize("page", pages())
def test_every_region_of_a_page_has_a_function(page: str) -> None:
    found = regions((ROOT / page).read_text(encoding="utf-8"))
    lost = [name for name in found if name.partition(".")[0] not in PAGES.get(page, {})]
    assert not lost, f"no function in the script of {page} makes {lost[0]!r}"


@pytest.mark.parametrize(("page", "figure"), FIGURES)
def test_every_function_of_a_script_has_a_region(page: str, figure: Figure) -> None:
    assert owned(page, figure), f"{page} has no region '{figure.name}' or '{figure.name}.…'"
    assert figure.seconds > 0
    assert figure.command


def test_every_script_has_a_page() -> None:
    assert set(scripted()) <= set(pages())


# Regions.

TEXT = """\
Before <!--=speed.ratio-->5.2<!--/--> times.

- a list
  <!-- figure: speed.table -->

  | a | b |
  | --- | ---: |
  | x | 1.50 |

  <!-- end figure -->
"""


def test_regions_are_found_and_replaced_in_place() -> None:
    assert regions(TEXT) == {"speed.ratio": "5.2", "speed.table": "| a | b |\n| --- | ---: |\n| x | 1.50 |"}
    new = replaced(TEXT, {"speed.ratio": "6.0", "speed.table": "| a | b |\n| --- | ---: |\n| x | 2 |\n| y | 3 |"})
    assert "Before <!--=speed.ratio-->6.0<!--/--> times." in new
    assert "  | x | 2 |\n  | y | 3 |\n\n  <!-- end figure -->\n" in new
    assert replaced(TEXT, {}) == TEXT
    assert replaced(TEXT, regions(TEXT)) == TEXT


@pytest.mark.parametrize(
    "text",
    [
        "<!-- figure: a -->\n\nno end\n",
        "<!-- end figure -->\n",
        "<!--=a-->5 has no end\n",
        "in a line <!-- figure: a --> 5 <!-- end figure -->\n",
        "<!--=a-->5<!--/--> and <!--=a-->6<!--/-->\n",
    ],
)
def test_marks_that_do_not_belong_together_are_refused(text: str) -> None:
    with pytest.raises(MarkError):
        regions(text)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("0.816 [0.766, 0.866]", "0.816 [0.766, 0.866]", True),
        ("0.816", "0.817", True),
        ("0.816", "0.818", False),
        ("−0.03", "−0.04", True),
        ("−0.03", "0.03", False),
        ("4,306", "4,307", False),
        ("| a  | 1.0 |", "| a | 1.0 |", True),
        ("3e-17", "3e-17", True),
        ("12 of 20", "12 of 21", False),
        ("bm25 0.5", "dense 0.5", False),
        ("0.5", "0.5 (0.4)", False),
    ],
)
def test_numbers_may_be_rounded_otherwise_and_nothing_else(old: str, new: str, expected: bool) -> None:
    assert same(old, new) is expected


def test_numbers_that_no_region_covers_are_listed() -> None:
    assert bare(TEXT) == []
    text = TEXT + "\nUnmarked: 0.5\n\n```\n0.7 in code\n```\n\nand `0.9`, and 30 % more.\n"
    assert [line for _, line in bare(text)] == ["Unmarked: 0.5", "and `0.9`, and 30 % more."]


def test_a_page_says_where_and_when_each_figure_was_computed() -> None:
    first = with_source("# Page\n", "speed", "ragworth score 'a|b'", "2026-11-18", "abc", "x86-64, 2 cores")
    assert "| speed | `ragworth score 'a\\|b'` | 2026-11-18 | abc | x86-64, 2 cores |" in first
    both = with_source(first, "demo", "ragworth evaluate", "2026-11-18", "abc", "aarch64, 4 cores")
    again = with_source(both, "speed", "ragworth score", "2026-11-19", "def", "x86-64, 2 cores")
    assert list(sources(again)) == ["demo", "speed"]
    assert "abc | x86-64" not in again
    assert again.count("Where the numbers come from") == 1


@pytest.mark.parametrize(
    ("page", "figure"), [(page, each) for page in PAGES for each in PAGES[page].values() if not each.whole]
)
def test_every_figure_of_a_page_has_a_date(page: str, figure: Figure) -> None:
    assert figure.name in sources((ROOT / page).read_text(encoding="utf-8"))


def test_shapes() -> None:
    assert same_shape("| a | 1 |\n| b | 2 |", "| a | 9 |\n| c | 8 |")
    assert not same_shape("| a | 1 |\n| b | 2 |", "| a | 9 |")
    assert not same_shape("| a | 1 |", "| a | 1 | 2 |")


def test_tables_are_read_as_benchmarks_print_them() -> None:
    (found,) = tables("title\n\n| of | n |\n| --- | ---: |\n| a \\| b | 1 |\n<!-- a note -->\n| c | 2 |\n\nend")
    assert found.rows == (("a \\| b", "1"), ("c", "2"))
    assert found.cell("c", "n") == "2"
    assert str(found.only("n")) == "| n |\n| ---: |\n| 1 |\n| 2 |"


@pytest.mark.slow
def test_a_page_that_is_generated_as_a_whole_is_compared_as_a_whole(tmp_path: Path) -> None:
    whole = [figure for page in PAGES.values() for figure in page.values() if figure.whole]
    assert {"commands", "metrics"} <= {figure.name for figure in whole}
    for figure in whole:
        made = computed(figure, Run(tmp_path))
        assert all(isinstance(shown, Page) and name.startswith("docs/") for name, shown in made.items())


def test_commands_about_a_folder_or_in_it_are_forgotten(tmp_path: Path) -> None:
    run = Run(tmp_path)
    kept = ("ls", f"{tmp_path}/demo-all")
    run.outputs = dict.fromkeys((("ragworth", f"{tmp_path}/demo/a", "."), ("ls", f"{tmp_path}/demo"), kept), "")
    run.forget(tmp_path / "demo")
    assert list(run.outputs) == [kept]
