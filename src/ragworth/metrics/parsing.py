"""Parse metrics from their written form, ``UDCG(gamma=0.33)@5``, and from trec_eval's names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.util import find_spec

from ragworth.core.errors import InputError, MetricError
from ragworth.metrics import METRICS
from ragworth.metrics.declaration import Metric, ParameterInput

Metrics = str | Metric | Sequence[str | Metric]

QUOTED = r"""\"[^\"]*\"|'[^']*'"""
METRIC_FORM = re.compile(rf"""\s*([^\s(@]+)\s*(?:\(((?:{QUOTED}|[^()"'])*)\))?\s*(?:@\s*(\S+?))?\s*""")
COMMA = re.compile(rf""",(?=(?:{QUOTED}|[^"'])*$)""")
"""A comma outside quotes."""
PAIR = re.compile(r"\s*(\w+)\s*=\s*(\"[^\"]*\"|'[^']*'|[^\s,]+)\s*")

ALIASES = {
    "map": "AP",
    "mrr": "RR",
    "recip_rank": "RR",
    "recall": "R",
    "precision": "P",
    "hits": "Success",
    "hit": "Success",
    "coverage": "Cov",
    "density": "Den",
    "alpha-ndcg": "alpha_nDCG",
    "α_ndcg": "alpha_nDCG",
    "α-ndcg": "alpha_nDCG",
    "set_p": "P",
    "set_recall": "R",
    "set_f": "F1",
}
"""Other common names, in lower case."""

TREC_CUT = re.compile(r"(ndcg_cut|map_cut|P|recall|success)[_.](\d+)")
TREC_GAINS = re.compile(r"ndcg\.([^@()]+=[^@()]+)")
TREC_NAMES = {"ndcg_cut": "nDCG", "map_cut": "AP", "P": "P", "recall": "R", "success": "Success"}


def try_parse(text: str) -> Metric | None:
    """A metric from its written form; None if it isn't one of ours, but maybe of another package."""
    try:
        return parse(text)
    except MetricError:
        return None


def parse(text: str) -> Metric:
    """Parse a metric; trec_eval's names (``ndcg_cut_10``, ``ndcg.1=3,2=9``) are accepted too."""
    trec = TREC_CUT.fullmatch(text.strip())
    if trec:
        text = f"{TREC_NAMES[trec[1]]}@{trec[2]}"
    elif levels := TREC_GAINS.fullmatch(text.strip()):
        text = f'nDCG(gains="{levels[1]}")'
    form = METRIC_FORM.fullmatch(text)
    if form is None:
        raise MetricError(f"cannot read {text!r} as a metric", expected="a form like nDCG@10 or UDCG(gamma=0.33)@5")
    folded = {name.casefold(): name for name in METRICS.names()}
    wanted = form[1].casefold()
    name = form[1] if form[1] in METRICS else ALIASES.get(wanted, folded.get(wanted, form[1]))
    try:
        declaration = METRICS.get(name)
    except InputError as error:
        remedy = " ".join(part for part in (error.remedy, _extra_advice()) if part)
        raise MetricError(error.found, expected=error.expected, remedy=remedy) from error
    pairs: list[tuple[str, str]] = []
    for part in COMMA.split(form[2]) if (form[2] or "").strip() else []:
        pair = PAIR.fullmatch(part)
        if pair is None:
            raise MetricError(
                f"cannot read {part.strip()!r} in {text!r}", expected="name=value, such as UDCG(gamma=0.33)@5"
            )
        pairs.append((pair[1], pair[2]))
    if len(dict(pairs)) < len(pairs):
        raise MetricError(f"a parameter occurs twice in {text!r}", expected="each parameter once")
    if form[3] is not None and not re.fullmatch(r"[0-9]{1,9}", form[3]):
        raise MetricError(f"the cutoff {form[3]!r} in {text!r} is not a whole number", expected=f"{name}@10")
    return declaration.bind(int(form[3]) if form[3] else None, **declaration.parse_values(pairs))


def _extra_advice() -> str:
    """How to get measures of ir_measures, if it isn't installed."""
    installed = find_spec("ir_measures") is not None
    return "" if installed else 'for a measure of ir_measures: pip install "ragworth[ir-measures]"'


def parse_all(metrics: Metrics) -> list[Metric]:
    """Parse metrics from their written forms, dropping repetitions and reporting all errors together."""
    given = [metrics] if isinstance(metrics, (str, Metric)) else list(metrics)
    for item in given:
        if not isinstance(item, (str, Metric)):
            raise MetricError(f"{item!r} is not a metric", expected="a form like nDCG@10")
    parsed: list[Metric] = []
    problems: list[InputError] = []
    for item in given:
        try:
            metric = parse(item) if isinstance(item, str) else item
        except MetricError as error:
            problems.append(error)
            continue
        if metric not in parsed:
            parsed.append(metric)
    if len(problems) == 1:
        raise problems[0]
    if problems:
        raise MetricError(
            f"{len(problems)} metrics can't be parsed", more=tuple(str(p).replace("\n", "\n  ") for p in problems)
        )
    if not parsed:
        raise MetricError("no metrics given", remedy="see: ragworth metrics")
    return parsed


def with_parameter(text: str, name: str, value: ParameterInput) -> str:
    """The written form of a metric with another value of a parameter; as it is if the metric has no such parameter."""
    try:
        metric = parse(text)
    except MetricError:
        return text  # a measure of another package
    if name not in metric.values:
        return text
    return str(metric.declaration.bind(metric.cutoff, **{**dict(metric.parameters), name: value}))
