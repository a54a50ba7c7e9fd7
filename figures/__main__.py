"""Compute the figures of the documentation and write them into the pages: ``make figures``."""

from __future__ import annotations

import argparse
import difflib
import os
import platform
import shutil
import subprocess
import sys
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from figures.declare import NEEDS, Figure, Page, Picture
from figures.regions import bare, replaced, same, same_shape, with_source
from figures.running import ROOT, Run, missing
from figures.scripts import computed, figures, owned, pages, scripted


def main() -> int:
    given = arguments()
    run = Run(given.work.resolve() / ("quick" if given.quick else ""), quick=given.quick)
    if unknown := [page for page in given.pages if page not in scripted() and not given.bare]:
        sys.exit(f"{unknown[0]} has no script; pages with one: {', '.join(scripted())}")
    chosen = [
        (page, figure)
        for page in given.pages or scripted()
        if page in scripted()
        for figure in figures(page).values()
        if wanted(figure, given)
    ]
    if given.bare:
        for page in given.pages or pages():
            for number, line in bare((ROOT / page).read_text(encoding="utf-8")):
                print(f"{page}:{number}: {line.strip()[:160]}")
        return 0
    if given.list:
        print("page\tfigure\tneeds\ttakes\tcommand")
        for page, figure in chosen:
            print(page, figure.name, ", ".join(figure.needs) or "nothing", figure.takes, figure.command, sep="\t")
        return 0
    where = provenance()  # before any page is written, so that the commit is the one that was there
    return max([one(page, figure, run, given, where) for page, figure in chosen], default=0)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m figures", description=__doc__)
    parser.add_argument("pages", nargs="*", metavar="PAGE", help="such as docs/statistics.md; all without any")
    parser.add_argument("--figure", action="append", default=[], metavar="NAME", help="only this figure of the pages")
    parser.add_argument("--needs", help=f"only figures that need no more than these: nothing, or {', '.join(NEEDS)}")
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 if a page is out of date")
    parser.add_argument("--quick", action="store_true", help="few data, to try the scripts: print, write nothing")
    parser.add_argument("--list", action="store_true", help="what there is, what it needs, how long it takes")
    parser.add_argument("--bare", action="store_true", help="lines with numbers that no figure covers")
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "figures", help="for workspaces and call stores")
    given = parser.parse_args()
    if given.needs is not None:
        given.needs = set(given.needs.replace(",", " ").split()) - {"nothing"}
        if unknown := given.needs - set(NEEDS):
            parser.error(f"--needs {unknown.pop()}: known are nothing, {', '.join(NEEDS)}")
    return given


def wanted(figure: Figure, given: argparse.Namespace) -> bool:
    named = not given.figure or figure.name in given.figure
    return named and (given.needs is None or set(figure.needs) <= given.needs)


def one(page: str, figure: Figure, run: Run, given: argparse.Namespace, where: tuple[str, str, str]) -> int:
    """Compute a figure, and write it, compare it, or print it; 1 if something is not as it should be."""
    title = f"{page}: {figure.name}"
    if lacking := missing(figure.needs, run.quick):
        print(f"{title}: not run, needs {', '.join(lacking)}")
        return 0
    print(f"{title}: about {figure.takes}", flush=True)
    old = owned(page, figure)
    try:
        new = computed(figure, run)
    except Exception:  # the other figures do not depend on it
        traceback.print_exc()
        return 1
    if not figure.whole and (gap := sorted(old.keys() ^ new.keys())):
        lack = "the page lacks the region" if gap[0] in new else "the script yields nothing for the region"
        print(f"{title}: {lack} {gap[0]}")
        return 1
    if given.quick:
        return tried(old, new)
    changed = [name for name, shown in new.items() if not same(old.get(name, ""), str(shown))]
    for name in changed:
        print(*difference(name, old.get(name, ""), str(new[name])), sep="\n")
    if given.check:
        return int(bool(changed))
    write(page, {name: shown for name, shown in new.items() if name in changed or isinstance(shown, Picture)})
    if not figure.whole:
        path = ROOT / page
        text = with_source(path.read_text(encoding="utf-8"), figure.name, figure.command, *where)
        path.write_text(text, encoding="utf-8")
    return 0


def provenance() -> tuple[str, str, str]:
    """Date, commit and machine of what is computed now."""
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--exclude=*"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    machine = f"{platform.machine().replace('_', '-')}, {os.cpu_count()} cores"
    return datetime.now(UTC).date().isoformat(), commit.stdout.strip(), machine


def tried(old: dict[str, str], new: dict[str, str | Picture | Page]) -> int:
    """Print what a trial made; 1 if a region has another shape than the page's."""
    bad = [name for name, shown in new.items() if not same_shape(old[name], str(shown))]
    for name, shown in new.items():
        print(f"  {name}{' (other shape than in the page)' if name in bad else ''}: {str(shown)[:2000]}")
    return int(bool(bad))


def difference(name: str, old: str, new: str) -> Iterator[str]:
    yield from difflib.unified_diff(
        old.splitlines(), new.splitlines(), f"{name}, page", f"{name}, now", lineterm="", n=0
    )


def write(page: str, new: dict[str, str | Picture | Page]) -> None:
    """Into the page; pictures beside it, generated pages where they belong."""
    path = ROOT / page
    texts = {}
    for name, shown in new.items():
        if isinstance(shown, Page):
            (ROOT / name).parent.mkdir(parents=True, exist_ok=True)
            (ROOT / name).write_text(shown.text, encoding="utf-8")
            continue
        if isinstance(shown, Picture):
            target = path.parent / shown.path
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(shown.made, target)
        texts[name] = str(shown)
    if texts:
        path.write_text(replaced(path.read_text(encoding="utf-8"), texts), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
