"""Use ragworth's metrics as ``ir_measures`` measures, and its measures as metrics (extra ``ir-measures``).

After ``import ragworth.interop.ir_measures``, ir_measures parses our metrics::

    >>> import ir_measures, ragworth.interop.ir_measures
    >>> ir_measures.parse_measure("UDCG(gamma=0.5)@5")
    UDCG(gamma=0.5)@5

They run wherever measures of ir_measures run, such as PyTerrier's ``pt.Experiment``. Inputs beyond relevance come with
the qrels: a column (or field) ``abstention`` for utility metrics, ``iteration`` as the sub-question and ``tokens`` for
coverage and density. Classical measures run here too if no other provider is installed.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

import polars as pl

from ragworth.core.errors import MetricError, MissingExtraError, format_count, format_list
from ragworth.data import OK, Contexts, Judgments, Ratings, Scores, coercion
from ragworth.metrics import METRICS
from ragworth.metrics.block_builder import ShownContexts
from ragworth.metrics.declaration import Declaration, Metric
from ragworth.metrics.engine import cut_contexts, drop_unjudged, score_tables
from ragworth.metrics.ground_truth import Tokens

try:
    import ir_measures
    from ir_measures.measures.base import registry as known_measures
    from ir_measures.providers.base import Any as AnyValue
except ImportError as error:
    raise MissingExtraError("ir_measures", "ir-measures", "using metrics of or in ir_measures") from error

SHARED_PARAMETERS = {"nDCG": {"dcg"}, "alpha_nDCG": {"alpha", "rel"}, "Judged": set()}
"""Parameters of their measures that ours also take; ``rel`` by default."""


class RagworthWarning(UserWarning):
    """Some queries have no value."""


def _build_measure(declaration: Declaration) -> Any:
    """Make an ir_measures measure for one of our metrics."""
    parameters = {
        p.name: ir_measures.ParamInfo(
            dtype=(float, int) if isinstance(p.default, float) else type(p.default), default=p.default, desc=p.doc
        )
        for p in declaration.parameters
    }
    if declaration.takes_cutoff:
        parameters["cutoff"] = ir_measures.ParamInfo(dtype=int, required=False, desc="ranking cutoff threshold")
    facts = {
        "__name__": declaration.name,
        "NAME": declaration.name,
        "PRETTY_NAME": declaration.title,
        "SHORT_DESC": declaration.title,
        "SUPPORTED_PARAMS": parameters,
        "__doc__": declaration.doc,
        "__module__": __name__,
    }
    return type(f"_{declaration.name}", (ir_measures.Measure,), facts)()


def _supported_measures() -> list[Any]:
    """Everything we can compute: our metrics under our names, and their equivalents."""
    supported = []
    for declaration in METRICS:
        name = declaration.name
        if name not in known_measures:
            measure = _build_measure(declaration)
            ir_measures.measures.register(measure, name=name)
            supported.append(measure(**{key: AnyValue() for key in measure.SUPPORTED_PARAMS}))
            continue
        theirs = known_measures[name]
        if isinstance(theirs, ir_measures.Measure):
            same = SHARED_PARAMETERS.get(name, {"rel"})
            given = {key: AnyValue() for key in theirs.SUPPORTED_PARAMS if key in same or key == "cutoff"}
            supported.append(theirs(**given))
    return supported


def to_metric(measure: Any) -> Metric:
    """Return our metric for an ir_measures measure that :class:`RagworthProvider` supports."""
    declaration = METRICS.get(measure.NAME)
    values = {key: value for key, value in measure.params.items() if key not in ("cutoff", "judged_only")}
    if measure.NAME == "nDCG" and "dcg" in values:
        values["gain"] = "exponential" if values.pop("dcg") == "exp-log2" else "linear"
    if measure.NAME == "alpha_nDCG" and "eta" not in values:
        values["eta"] = float(values.pop("rel", 1))
    return declaration.bind(measure.params.get("cutoff"), **values)


class RagworthProvider(ir_measures.Provider):  # type: ignore[misc]
    """Computes measures with ragworth."""

    NAME = "ragworth"

    def __init__(self) -> None:
        super().__init__()
        self.SUPPORTED_MEASURES = _supported_measures()

    def supports(self, measure: Any) -> bool:
        """Like the base class, without measures that skip unjudged documents or map gains."""
        skips = measure.params.get("judged_only") or measure.params.get("gains")
        return not skips and bool(super().supports(measure))

    def _evaluator(self, measures: Iterable[Any], qrels: Any) -> RagworthEvaluator:
        return RagworthEvaluator(list(measures), _rows(qrels))


class RagworthEvaluator(ir_measures.Evaluator):  # type: ignore[misc]
    """Scores runs for given measures and qrels. A query without a value is left out, with a warning."""

    def __init__(self, measures: list[Any], qrels: pl.DataFrame) -> None:
        super().__init__(measures, qrels["query_id"].cast(pl.String).unique(maintain_order=True).to_list())
        self.metrics = {str(to_metric(measure)): measure for measure in measures}
        self.judgments = _judgments(qrels)
        self.ratings, self.tokens = _ratings(qrels), _tokens(qrels)

    def iter_calc(self, run: Any) -> Iterator[Any]:
        """Yield values query by query; judged queries missing from the run count as empty contexts."""
        rows = _rows(run).select("query_id", "doc_id", "score")
        rows = rows.filter(pl.col("query_id").cast(pl.String).is_in(self.qrel_qids))
        lacking = sorted(set(self.qrel_qids) - set(rows["query_id"].cast(pl.String)))
        contexts = Contexts(rows, empty=[("run", query) for query in lacking])
        scores = score_tables(contexts, self.judgments, list(self.metrics), ratings=self.ratings, tokens=self.tokens)
        for metric, query, value, status in scores.frame.select("metric", "query", "value", "status").iter_rows():
            if status == OK:
                yield ir_measures.Metric(query_id=query, measure=self.metrics[metric], value=value)
        missing = scores.frame.filter(pl.col("status") != OK).group_by("metric", "status", maintain_order=True).len()
        for metric, status, n in missing.iter_rows():
            queries = format_count(n, "query has", "queries have")
            warnings.warn(
                f"{metric}: {queries} no value ({status}), left out of the mean", RagworthWarning, stacklevel=2
            )


def _rows(data: Any) -> pl.DataFrame:
    """Convert qrels or a run in any form that ir_measures accepts, keeping all fields."""
    if isinstance(data, dict):
        pairs = [(q, d, value) for q, items in data.items() for d, value in items.items()]
        columns = {"query_id": [p[0] for p in pairs], "doc_id": [p[1] for p in pairs], "score": [p[2] for p in pairs]}
        return pl.DataFrame(columns | {"relevance": columns["score"]}, strict=False)
    if hasattr(data, "itertuples"):
        return coercion.to_frame(data)
    rows = list(data)
    fields = getattr(rows[0], "_fields", ()) if rows else ("query_id", "doc_id", "score", "relevance")
    return pl.DataFrame({field: [getattr(row, field) for row in rows] for field in fields}, strict=False)


def _judgments(qrels: pl.DataFrame) -> Judgments:
    """Relevance (the highest over sub-topics), and other judgments in the qrels."""
    pairs = qrels.group_by("query_id", "doc_id", maintain_order=True)
    parts = [Judgments(pairs.agg(pl.col("relevance").max().alias("value")))]
    for aspect in ("abstention", "downstream", "likelihood"):
        if aspect in qrels.columns:
            values = pairs.agg(pl.col(aspect).first().alias("value")).filter(pl.col("value").is_not_null())
            parts.append(Judgments(values.with_columns(pl.lit(aspect).alias("aspect"))))
    return Judgments.concat(parts)


def _ratings(qrels: pl.DataFrame) -> Ratings | None:
    if "iteration" not in qrels.columns:
        return None
    return Ratings(
        qrels.select(
            "query_id",
            "doc_id",
            pl.col("iteration").cast(pl.String).alias("subquestion"),
            pl.col("relevance").alias("value"),
        )
    )


def _tokens(qrels: pl.DataFrame) -> Tokens | None:
    if "tokens" not in qrels.columns:
        return None
    return Tokens.of(qrels.select("doc_id", "tokens").unique("doc_id", maintain_order=True))


def find_measure(text: str) -> Any | None:
    """Return the ir_measures measure of this name, or None if it is unknown or the name is ours."""
    try:
        measure = ir_measures.parse_measure(text)
    except (ValueError, NameError, AssertionError, TypeError, KeyError):
        return None
    if measure.NAME in METRICS:
        return None
    try:
        measure.validate_params()
    except AssertionError as error:
        raise _parameter_error(measure) from error
    return measure


def _parameter_error(measure: Any) -> MetricError:
    """The error for a measure of ir_measures without a parameter that it requires, or with a wrong one."""
    given, known = measure.params, measure.SUPPORTED_PARAMS
    lacking = [name for name, info in known.items() if info.required and name not in given]
    unknown = [name for name in given if name not in known]
    wrong = [f"{name}={value}" for name, value in given.items() if name in known and not known[name].validate(value)]
    problems = [("needs", lacking), ("has no parameter", unknown), ("can't have", wrong)]
    found = " and ".join(f"{verb} {format_list(names)}" for verb, names in problems if names)
    form = ", ".join(f"{name}=…" for name in known if name != "cutoff")
    return MetricError(
        f"the measure {measure.NAME} of ir_measures {found}",
        expected=f"a form like {measure.NAME}({form}){'@10' if 'cutoff' in known else ''}",
    )


def score_ir_measures(
    contexts: Contexts,
    judgments: Judgments | None,
    measures: list[Any],
    *,
    complete: bool = True,
    judged_only: bool = False,
    max_rank: int | None = None,
) -> Scores:
    """Score contexts with measures of ir_measures, in the order shown.

    As for our own recall, queries with failed judgments have no value.
    """
    checked = score_tables(contexts, judgments, "R", complete=complete, judged_only=judged_only, max_rank=max_rank)
    assert judgments is not None
    shown = cut_contexts(ShownContexts.of(contexts), max_rank)
    if judged_only:
        shown, _ = drop_unjudged(shown, judgments, None, "relevance")
    relevance = judgments.of("relevance").filter(pl.col("status") == OK)
    if bool((relevance["value"] != relevance["value"].round()).any()):
        raise MetricError(
            f"{measures[0]} comes from ir_measures, which takes whole-number relevance only",
            remedy="round the relevance, or use a metric of ours (ragworth metrics)",
        )
    # Some tools behind measures take numbers as ids only, and none takes spaces.
    numbers: defaultdict[str, str] = defaultdict(lambda: str(len(numbers)))
    labels = relevance.select("query", "passage", "value").iter_rows()
    qrels = [ir_measures.Qrel(numbers[q], numbers[p], int(v)) for q, p, v in labels]
    rows: list[tuple[str, str, str, float]] = []
    shown_rows = shown.rows()
    for number, system in enumerate(shown.systems):
        mine = shown_rows.filter(pl.col("system") == number).select("query", "passage", "rank")
        run = [ir_measures.ScoredDoc(numbers[q], numbers[p], -float(rank)) for q, p, rank in mine.iter_rows()]
        try:
            results = list(ir_measures.iter_calc(measures, qrels, run))
        except Exception as error:  # anything the tool behind a measure may raise
            raise MetricError(f"ir_measures cannot compute {measures[0]} here: {str(error)[:300]}") from error
        names = {number: name for name, number in numbers.items()}
        rows += [(system, names[m.query_id], str(m.measure), float(m.value)) for m in results]
    schema = {"system": pl.String, "query": pl.String, "metric": pl.String, "found": pl.Float64}
    found = pl.DataFrame(rows, schema=schema, orient="row")
    parts = []
    for measure in measures:
        part = checked.frame.with_columns(pl.lit(str(measure)).alias("metric"))
        part = part.join(found, on=["system", "query", "metric"], how="left", maintain_order="left")
        finite = pl.col("found").is_finite().fill_null(False)
        status = pl.when((pl.col("status") == OK) & ~finite).then(pl.lit("no-value")).otherwise(pl.col("status"))
        part = part.with_columns(status.alias("status"))
        parts.append(part.with_columns(pl.when(pl.col("status") == OK).then(pl.col("found")).alias("value")))
    return Scores.trusted(pl.concat(parts), checked.notes)


PROVIDER = RagworthProvider()
if PROVIDER.NAME not in ir_measures.providers.registry:
    ir_measures.providers.register(PROVIDER)
    ir_measures.DefaultPipeline.providers.append(PROVIDER)
