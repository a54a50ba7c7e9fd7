"""training/reader/README.md: the written groups, and RGB as it was read again."""

from collections import Counter
from pathlib import Path

from figures.declare import Shown, figure
from figures.running import ROOT, Run

from ragworth.stats.agreement import cohen_kappa

RGB = ROOT / "training" / "reader" / "rgb.tsv"


@figure("training.reader.written.read, in Python", seconds=8)
def written(run: Run) -> Shown:
    from training.reader.written import files, read

    groups = [group for path in files() for group in read(Path(path))]
    asked = [(group, one) for group in groups for one in group.questions]
    pairs = sum(len(group.passages) for group, _ in asked)
    answering = sum(len(one.answering) for _, one in asked)
    disputed = sum(len(one.disputed) for _, one in asked)
    yield "groups", f"{len(groups):,}"
    yield "questions", f"{len(asked):,}"
    yield "answering", f"{answering:,}"
    yield "disputed", f"{disputed:,}"
    yield "silent", f"{pairs - answering - disputed:,}"
    yield "seeming", f"{sum(len(one.seeming) for _, one in asked):,}"
    yield "unanswered", f"{sum(not one.answering for _, one in asked):,}"


@figure("training/reader/rgb.tsv, counted", seconds=1)
def read_again(run: Run) -> Shown:
    rows = [line.split("\t") for line in RGB.read_text(encoding="utf-8").splitlines()[1:]]
    agreed = [row for row in rows if row[3] == row[4]]
    yield "passages", str(len(rows))
    yield "agreed", str(len(agreed))
    kappa = cohen_kappa([row[3] for row in rows], [row[4] for row in rows]).value
    assert kappa is not None
    yield "kappa", f"{kappa:.2f}"
    for kind in ("negative", "positive"):
        said = Counter(row[3] for row in agreed if row[1] == kind)
        yield kind, str(sum(row[1] == kind for row in rows))
        for label in ("lacks", "answers", "partly"):
            yield f"{kind}-{label}", str(said[label])
