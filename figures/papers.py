"""What the pages of the papers share."""

from __future__ import annotations

from figures.running import Run
from figures.tables import tables


def share(value: float | None) -> str:
    """A share in per cent."""
    return "–" if value is None else f"{100 * value:.1f} %"


def planted_table(run: Run, *studies: str) -> str:
    """What studies find of readers whose behaviour is known."""
    (found,) = tables(run.output(f"python benchmarks/planted.py {' '.join(studies)}"))
    return str(found)
