"""How far judges agree: pairs, all together, and each against a reference."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from ragworth.errors import InputError, counted, listed
from ragworth.report.study import Figure, Findings, Shown
from ragworth.report.study.charts import dots, heat
from ragworth.stats.agreement import cohen_kappa
from ragworth.stats.pooled import pooled
from ragworth.stats.raters import fleiss_kappa, krippendorff_alpha
from ragworth.stats.resampled import Span, expanded, resample_counts
from ragworth.studies.judges import Judges
from ragworth.studies.opinions import GRADES
from ragworth.studies.words import between, left_out_rows, signed

Floats = npt.NDArray[np.float64]

LABELS = 12
"""Different values up to which a table of confusions, and plain κ, say something."""
DRAWN = 6
"""Pairs of judges whose confusions are drawn."""
TOLD = 4
"""Judges that are told one by one; of more, the best and the worst."""
WORDS = "the labels are words without an order"
CONTINUOUS = f"more than {LABELS} different values, so that equal ones mean little"


@dataclass
class Panel:
    """The judges of one aspect of one case; ``values`` is things × judges, NaN where there is no judgment."""

    study: Judges
    case: str
    aspect: str
    frame: pl.DataFrame

    def __post_init__(self) -> None:
        self.judges: list[str] = self.frame["judge"].unique(maintain_order=True).to_list()
        wide = self.frame.pivot("judge", index=["query", "thing"], values="value", maintain_order=True)
        every = wide.select(self.judges).cast(pl.Float64).fill_null(float("nan")).to_numpy()
        self.values: Floats = every.reshape(wide.height, len(self.judges))
        self.queries = np.unique(wide["query"].to_numpy().astype(str), return_inverse=True)[1].reshape(-1)
        words = self.frame["label"].drop_nulls().unique().to_list()
        self.ordered = set(words) <= set(GRADES)
        self.few = self.frame["value"].drop_nulls().n_unique() <= LABELS
        names = self.frame.drop_nulls("label").select("value", "label").unique("value")
        self.names = dict(names.iter_rows())

    @property
    def where(self) -> dict[str, str]:
        return {"case": self.case, "aspect": self.aspect}

    @property
    def how(self) -> dict[str, Any]:
        return {"level": self.study.level, "resamples": self.study.resamples, "seed": self.study.seed}

    def word(self, value: float) -> str:
        return str(self.names.get(value, f"{value:g}"))

    def who(self) -> Iterator[dict[str, Any]]:
        for at, judge in enumerate(self.judges):
            column = self.values[:, at]
            known = column[~np.isnan(column)]
            mine = self.frame.filter(pl.col("judge") == judge)
            yield self.where | {
                "judge": judge,
                "things": len(known),
                "without a value": mine["value"].null_count(),
                "not judged": len(column) - mine.height,
                "mean": float(known.mean()) if len(known) and self.ordered else None,
            }

    @cached_property
    def pairs(self) -> list[dict[str, Any]]:
        """Every two judges: equal labels, κ, κ with quadratic weights, and Spearman's ρ."""
        made = []
        for a, b in combinations(range(len(self.judges)), 2):
            x, y = self.values[:, a], self.values[:, b]
            plain = cohen_kappa(x, y, groups=self.queries, **self.how)
            weighted = cohen_kappa(x, y, weights="quadratic", groups=self.queries, **self.how) if self.ordered else None
            rank = pooled(x[:, None], y, self.queries, **self.how)[0] if self.ordered else None
            usable = self.few
            made.append(
                self.where
                | {
                    "first": self.judges[a],
                    "second": self.judges[b],
                    "things": plain.n,
                    "one of them missing": plain.missing,
                }
                | {"equal": plain.observed if usable else None}
                | _ends("κ", plain.value if usable else None, plain.interval if usable else None)
                | _ends("κ quadratic", weighted.value if weighted else None, weighted.interval if weighted else None)
                | _ends("Spearman ρ", rank.value if rank else None, rank.interval if rank else None)
                | {"why": "; ".join(_reasons(plain.reason if usable else CONTINUOUS, rank.reason if rank else WORDS))}
            )
        return made

    @cached_property
    def together(self) -> list[dict[str, Any]]:
        """All judges at once."""
        ways: list[tuple[str, Any]] = []
        if self.few:
            ways.append(("Fleiss κ", fleiss_kappa(self.values, groups=self.queries, **self.how)))
            ways.append(("Krippendorff α, nominal", krippendorff_alpha(self.values, groups=self.queries, **self.how)))
        for measure in ("ordinal", "interval") if self.ordered else ():
            found = krippendorff_alpha(self.values, measure, groups=self.queries, **self.how)
            ways.append((f"Krippendorff α, {measure}", found))
        return [
            self.where
            | {"measure": name}
            | _ends("value", one.value, one.interval)
            | {"judges": len(self.judges), "things": one.items, "judgments": one.ratings, "left out": one.left_out}
            | {"why": one.reason}
            for name, one in ways
        ]

    def against(self) -> Iterator[dict[str, Any]]:
        """Each judge against the reference: precision and recall of yes and of no, with intervals over queries."""
        reference = self.study.reference
        if reference not in self.judges:
            return
        truth = self.values[:, self.judges.index(reference)]
        for at, judge in enumerate(self.judges):
            if judge == reference:
                continue
            said = self.values[:, at]
            both = ~(np.isnan(said) | np.isnan(truth))
            yes, right = said[both] >= self.study.positive, truth[both] >= self.study.positive
            for name, given, true in (("yes", yes, right), ("no", ~yes, ~right)):
                yield (
                    self.where
                    | {"judge": judge, "reference": reference, "label": name}
                    | self._counted(given, true, self.queries[both])
                )

    def _counted(
        self, given: npt.NDArray[np.bool_], true: npt.NDArray[np.bool_], query: npt.NDArray[np.int64]
    ) -> dict[str, Any]:
        each = np.stack([given & true, given & ~true, ~given & true], axis=1).astype(np.float64)
        hit, false, missed = each.sum(axis=0)
        units = np.unique(query, return_inverse=True)[1].reshape(-1)
        size = int(units.max(initial=-1)) + 1
        sums = np.zeros((size, 3))
        np.add.at(sums, units, each)
        draws = (
            np.concatenate([c @ sums for c in resample_counts(size, self.study.resamples, self.study.seed, 256)])
            if size > 1
            else np.empty((0, 3))
        )
        found = _ends("precision", _share(hit, hit + false), self._span(draws[:, 0], draws[:, 0] + draws[:, 1], size))
        found |= _ends("recall", _share(hit, hit + missed), self._span(draws[:, 0], draws[:, 0] + draws[:, 2], size))
        f1 = _share(2 * hit, 2 * hit + false + missed)
        return found | {
            "F1": f1,
            "both": int(hit),
            "judge alone": int(false),
            "reference alone": int(missed),
            "things": len(given),
        }

    def _span(self, part: Floats, whole: Floats, size: int) -> Span | None:
        shares = np.divide(part, whole, out=np.full(len(part), np.nan), where=whole > 0)
        return expanded(shares, size, self.study.level)

    @cached_property
    def confusions(self) -> list[dict[str, Any]]:
        if not self.few:
            return []
        made = []
        for a, b in self._shown():
            x, y = self.values[:, a], self.values[:, b]
            both = ~(np.isnan(x) | np.isnan(y))
            cells, count = np.unique(np.stack([x[both], y[both]], axis=1), axis=0, return_counts=True)
            for (first, second), n in zip(cells, count, strict=True):
                made.append(
                    self.where
                    | {"first": self.judges[a], "second": self.judges[b], "first says": self.word(first)}
                    | {"second says": self.word(second), "things": int(n), "share": float(n / (x[both] == first).sum())}
                )
        return made

    def _shown(self) -> list[tuple[int, int]]:
        """Pairs whose confusions are counted: those with the reference, or all."""
        if self.study.reference in self.judges:
            at = self.judges.index(self.study.reference or "")
            return [(at, other) for other in range(len(self.judges)) if other != at]
        return list(combinations(range(len(self.judges)), 2))

    def lone(self) -> int:
        """Things with fewer than two judgments."""
        return int((~np.isnan(self.values)).sum(axis=1).__lt__(2).sum())

    def sentence(self) -> str:
        where = f"{self.case}, {self.aspect}: " if self.aspect != "judgments" else f"{self.case}: "
        values = [one for one in self.together if one["value"] is not None]
        if not values:
            return f"{where}agreement has no value: {self.together[0]['why'] if self.together else CONTINUOUS}."
        alpha = next((one for one in values if one["measure"].endswith("ordinal")), values[0])
        span = Span(alpha["low"], alpha["high"]) if alpha["low"] is not None else None
        said = (
            f"{where}{counted(len(self.judges), 'judge')} of {counted(alpha['things'], 'thing')}: {alpha['measure']} "
            f"{signed(alpha['value'])} {between(span)}."
        )
        known = [one for one in self.pairs if one["κ"] is not None]
        if known:
            low, high = (pick(known, key=lambda one: one["κ"]) for pick in (min, max))
            said += f" Cohen κ of {high['first']} and {high['second']} is {signed(high['κ'])}"
            said += f", of {low['first']} and {low['second']} {signed(low['κ'])}." if low is not high else "."
        told = [
            one for one in self.against() if one["label"] == "yes" and None not in (one["precision"], one["recall"])
        ]
        if len(told) > TOLD:
            told = sorted(told, key=lambda one: -one["F1"])
            told = [told[0], told[-1]]
        for one in told:
            numbers = f"precision {one['precision']:.2f} and recall {one['recall']:.2f}"
            said += f" Against {one['reference']}, {one['judge']} has {numbers}."
        return said


def _share(part: float, whole: float) -> float | None:
    return float(part / whole) if whole else None


def _ends(name: str, value: float | None, span: Span | None) -> dict[str, float | None]:
    low, high = ("low", "high") if name == "value" else (f"{name} low", f"{name} high")
    return {name: value, low: span.low if span else None, high: span.high if span else None}


def _reasons(*reasons: str) -> list[str]:
    return list(dict.fromkeys(reason for reason in reasons if reason))


@dataclass
class Panels:
    """All aspects of all cases."""

    study: Judges
    tables: Mapping[str, pl.DataFrame]

    def findings(self) -> Findings:
        every = [
            Panel(self.study, case, str(aspect), part)
            for case, frame in self.tables.items()
            for (aspect,), part in frame.group_by("aspect", maintain_order=True)
            if part.drop_nulls("value")["judge"].n_unique() > 1
        ]
        known = {judge for panel in every for judge in panel.judges}
        if self.study.reference is not None and self.study.reference not in known:
            raise InputError(f"there is no judge {self.study.reference!r}", expected=listed(sorted(known), 12))
        pairs, together = (
            self._frame(p for x in every for p in x.pairs),
            self._frame(t for x in every for t in x.together),
        )
        against = self._frame(row for panel in every for row in panel.against())
        confusions = self._frame(row for panel in every for row in panel.confusions)
        shown = [
            Shown("judges", "Who judged what", self._frame(row for panel in every for row in panel.who())),
            Shown("together", "All judges together", together, "intervals are over queries"),
            Shown(
                "pairs",
                "Every two judges",
                pairs,
                "over the things that both gave a value; κ quadratic and ρ need an order",
            ),
        ]
        if against.height:
            note = f"yes is {self.study.positive:g} or more"
            shown.append(Shown("reference", f"Each judge against {self.study.reference}", against, note))
        if confusions.height:
            shown.append(
                Shown(
                    "confusions", "What one says where the other says what", confusions, "share: of what the first says"
                )
            )
        lead = " ".join(
            f"{panel.case}, {panel.aspect}: {counted(len(panel.judges), 'judge')} of "
            f"{counted(len(panel.values), 'thing')} of {counted(len(set(panel.queries.tolist())), 'query', 'queries')}."
            for panel in every
        )
        return Findings(
            "Judges: how far do they agree?",
            lead,
            tuple(panel.sentence() for panel in every),
            tuple(shown),
            tuple(self._figures(every, together)),
            left_out_rows(
                (panel.case, f"{panel.aspect}: things with fewer than two judgments", lone)
                for panel in every
                if (lone := panel.lone())
            ),
        )

    @staticmethod
    def _frame(rows: Iterator[dict[str, Any]] | Any) -> pl.DataFrame:
        return pl.DataFrame(list(rows), infer_schema_length=None)

    def _figures(self, every: list[Panel], together: pl.DataFrame) -> Iterator[Figure]:
        known = together.filter(pl.col("value").is_not_null())
        if known.height:
            several = len(every) > 1
            group = [pl.concat_str(["case", "aspect"], separator=", ").alias("group")] if several else []
            frame = known.select(
                pl.col("measure").alias("label"), "value", "low", "high", pl.col("things").alias("n"), *group
            )
            yield Figure(
                "together",
                "How far all judges agree",
                f"{self.study.level:.0%} intervals over queries; 0 is chance.",
                dots(frame, "agreement", zero=True),
            )
        for number, panel in enumerate(every, 1):
            yield from self._matrix(number, panel, len(every) > 1)
            yield from self._confused(number, panel)

    def _matrix(self, number: int, panel: Panel, several: bool) -> Iterator[Figure]:
        name = "κ" if panel.few else "Spearman ρ"
        rows = [(one["first"], one["second"], one[name], one["things"]) for one in panel.pairs if one[name] is not None]
        if len(panel.judges) < 3 or not rows:
            return
        frame = pl.DataFrame(
            [*rows, *((b, a, value, n) for a, b, value, n in rows)],
            schema=["first", "second", "value", "n"],
            orient="row",
        )
        where = f": {panel.case}, {panel.aspect}" if several else ""
        words = "Cohen κ" if panel.few else name
        yield Figure(
            f"pairs-{number}",
            f"How far every two judges agree{where}",
            f"{words} over the things that both judged.",
            heat(frame, panel.judges, panel.judges, words),
        )

    def _confused(self, number: int, panel: Panel) -> Iterator[Figure]:
        frame = self._frame(panel.confusions)
        if not frame.height or len(panel._shown()) > DRAWN:
            return
        values = sorted({float(v) for v in np.unique(panel.values[~np.isnan(panel.values)])})
        labels = [panel.word(value) for value in values]
        for at, (a, b) in enumerate(panel._shown(), 1):
            first, second = panel.judges[a], panel.judges[b]
            mine = frame.filter((pl.col("first") == first) & (pl.col("second") == second)).select(
                pl.col("first says").alias("first"),
                pl.col("second says").alias("second"),
                pl.col("share").alias("value"),
                pl.col("things").cast(pl.String).alias("label"),
                pl.col("things").alias("n"),
            )
            yield Figure(
                f"confusion-{number}-{at}",
                f"What {second} says where {first} says what",
                "Number of things in each cell; the colour is their share of the row.",
                heat(mine, labels, labels, "share of the row", "share", down=first, along=second),
            )
