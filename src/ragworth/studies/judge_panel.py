"""The judges of one aspect: pairs, all together, and each against a reference."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from ragworth.errors import format_count
from ragworth.stats.agreement import cohen_kappa
from ragworth.stats.pooled import pooled_correlations
from ragworth.stats.raters import fleiss_kappa, krippendorff_alpha
from ragworth.stats.resampling import ConfidenceInterval, expanded_interval, resample_counts
from ragworth.studies.judge_tables import FILES, GRADES, word
from ragworth.studies.judges import Judges
from ragworth.studies.sentences import between, signed

Floats = npt.NDArray[np.float64]

LABELS = 12
"""Different values up to which a table of confusions, and plain κ, say something."""
TOLD = 4
"""Judges that are told one by one; of more, the best and the worst."""
WORDS = "the labels are words without an order"
CONTINUOUS = f"more than {LABELS} different values, so that equal ones mean little"


@dataclass
class JudgePanel:
    """The judges of one aspect of one case; ``values`` is things × judges, NaN where there is no judgment."""

    study: Judges
    case: str
    aspect: str
    frame: pl.DataFrame

    def __post_init__(self) -> None:
        self.judges: list[str] = self.frame["judge"].unique(maintain_order=True).to_list()
        # By numbers: a judge may be called as a column is.
        place = {judge: at for at, judge in enumerate(self.judges)}
        things = self.frame.select("query", "thing").unique(maintain_order=True)
        row = {pair: at for at, pair in enumerate(things.iter_rows())}
        self.values: Floats = np.full((things.height, len(self.judges)), np.nan)
        for query, thing, judge, value in self.frame.select("query", "thing", "judge", "value").iter_rows():
            self.values[row[query, thing], place[judge]] = np.nan if value is None else value
        self.queries = np.unique(things["query"].to_numpy().astype(str), return_inverse=True)[1].reshape(-1)
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

    @cached_property
    def positive(self) -> tuple[str, npt.NDArray[np.float64]] | None:
        """What means yes, in words, and its values; None where words have no order and nobody says which."""
        known = np.unique(self.values[~np.isnan(self.values)])
        if self.study.yes is not None and (labels := [v for v in known if self.names.get(v) == word(self.study.yes)]):
            return self.word(labels[0]), np.array(labels)
        if not self.ordered:
            return None
        return f"{self.study.positive:g} or more", known[known >= self.study.positive]

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
            rank = pooled_correlations(x[:, None], y, self.queries, **self.how)[0] if self.ordered else None
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
        if reference not in self.judges or self.positive is None:
            return
        truth = self.values[:, self.judges.index(reference)]
        for at, judge in enumerate(self.judges):
            if judge == reference:
                continue
            said = self.values[:, at]
            both = ~(np.isnan(said) | np.isnan(truth))
            yes, right = (np.isin(values[both], self.positive[1]) for values in (said, truth))
            for name, given, true in (("yes", yes, right), ("no", ~yes, ~right)):
                yield (
                    self.where
                    | {"judge": judge, "reference": reference, "label": name, "yes is": self.positive[0]}
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

    def _span(self, part: Floats, whole: Floats, size: int) -> ConfidenceInterval | None:
        shares = np.divide(part, whole, out=np.full(len(part), np.nan), where=whole > 0)
        return expanded_interval(shares, size, self.study.level)

    @cached_property
    def confusions(self) -> list[dict[str, Any]]:
        if not self.few:
            return []
        made = []
        for a, b in self.shown():
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

    def shown(self) -> list[tuple[int, int]]:
        """Pairs whose confusions are counted: those with the reference, or all."""
        if self.study.reference in self.judges:
            at = self.judges.index(self.study.reference or "")
            return [(at, other) for other in range(len(self.judges)) if other != at]
        return list(combinations(range(len(self.judges)), 2))

    def lone(self) -> int:
        """Things with fewer than two judgments."""
        return int((~np.isnan(self.values)).sum(axis=1).__lt__(2).sum())

    @property
    def head(self) -> str:
        """What a sentence about it begins with."""
        return f"{self.case}, {self.aspect}: " if self.aspect != FILES else f"{self.case}: "

    def sentence(self) -> str:
        where = self.head
        values = [one for one in self.together if one["value"] is not None]
        if not values:
            return f"{where}agreement has no value: {self.together[0]['why'] if self.together else CONTINUOUS}."
        alpha = next((one for one in values if one["measure"].endswith("ordinal")), values[0])
        span = ConfidenceInterval(alpha["low"], alpha["high"]) if alpha["low"] is not None else None
        said = (
            f"{where}{format_count(len(self.judges), 'judge')} of {format_count(alpha['things'], 'thing')}: "
            f"{alpha['measure']} "
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


def _ends(name: str, value: float | None, span: ConfidenceInterval | None) -> dict[str, float | None]:
    low, high = ("low", "high") if name == "value" else (f"{name} low", f"{name} high")
    return {name: value, low: span.low if span else None, high: span.high if span else None}


def _reasons(*reasons: str) -> list[str]:
    return list(dict.fromkeys(reason for reason in reasons if reason))
