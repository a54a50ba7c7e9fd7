"""Which page has which script, and what is in it."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from figures.declare import Figure, Page, Picture
from figures.regions import regions
from figures.running import ROOT, Run

SCRIPTS = Path(__file__).parent / "pages"
SEARCHED = ("*.md", "docs/**/*.md", "benchmarks/*.md", "examples/**/*.md", "training/**/*.md", "src/**/*.md")


def pages() -> list[str]:
    """All pages that may have figures, as paths from the root."""
    found = {path.relative_to(ROOT).as_posix() for pattern in SEARCHED for path in ROOT.glob(pattern)}
    return sorted(page for page in found if "/results/" not in page and page != "CHANGELOG.md")


def scripted() -> list[str]:
    """The pages that have a script."""
    return [script.relative_to(SCRIPTS).with_suffix(".md").as_posix() for script in sorted(SCRIPTS.rglob("*.py"))]


def figures(page: str) -> dict[str, Figure]:
    """The figures that a page's script declares, by name."""
    path = SCRIPTS / Path(page).with_suffix(".py")
    name = page.removesuffix(".md").replace("/", ".").replace("-", "_")
    spec = spec_from_file_location(f"figures.pages.{name}", path)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    found = [each.figure for each in vars(module).values() if isinstance(getattr(each, "figure", None), Figure)]
    return {figure.name: figure for figure in found}


def owned(page: str, figure: Figure) -> dict[str, str]:
    """The regions of a page that a figure fills, or the pages it generates, with their text now."""
    if figure.whole:
        return {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in ROOT.glob(figure.whole)}
    text = (ROOT / page).read_text(encoding="utf-8")
    return {name: body for name, body in regions(text).items() if name.partition(".")[0] == figure.name}


def computed(figure: Figure, run: Run) -> dict[str, str | Picture | Page]:
    """What a figure's function yields, under the names that regions have."""
    made: dict[str, str | Picture | Page] = {}
    for name, shown in figure.make(run):
        whole = name if isinstance(shown, Page) else f"{figure.name}.{name}" if name else figure.name
        if whole in made:
            raise ValueError(f"{figure.name} yields {whole!r} twice")
        made[whole] = shown
    return made
