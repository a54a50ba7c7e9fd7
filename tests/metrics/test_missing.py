"""What has no value and says why, what is left out, and what is refused."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import ragworth
from ragworth.core.errors import InputError, MetricError, TableError
from ragworth.metrics import METRICS
from tests.metrics.cases import answers, judged, lengths, rated, relevance_scores, shown, statuses


def test_a_failed_judgment_in_the_context_leaves_no_value() -> None:
    metrics = ["P", "R", "F1", "AP", "RR", "nDCG", "Success", "Rprec", "Bpref", "F", "F_e@1", "T", "T_u", "P@1", "RR@1"]
    scores = relevance_scores("ab", judged({"a": 1.0, "b": None}), metrics)
    # Up to rank 1 all is known.
    assert statuses(scores) == dict.fromkeys(metrics, "unjudged") | {"P@1": "ok", "RR@1": "ok"}
    assert answers(scores)[-2:] == [1.0, 1.0]


def test_a_failed_judgment_elsewhere_matters_where_all_relevant_passages_are_counted() -> None:
    counting = ["R", "F1", "AP", "nDCG", "Rprec", "Bpref", "F"]
    looking = ["P", "RR", "Success", "F_e(whole=true)", "F_e(estimate=growth, whole=true)", "T", "T_u", "Judged"]
    scores = relevance_scores("a", judged({"a": 1.0, "z": None}), [*counting, *looking])
    assert statuses(scores) == dict.fromkeys(counting, "unjudged") | dict.fromkeys(looking, "ok")


def test_a_failed_judgment_elsewhere_does_not_matter_to_an_ideal_of_the_context_itself() -> None:
    metrics = ["nDCG(ideal=retrieved)", "AP(ideal=retrieved)"]
    assert answers(relevance_scores("a", judged({"a": 1.0, "z": None}), metrics)) == [1.0, 1.0]


@pytest.mark.parametrize("estimate", ["pool", "chapman"])
def test_a_failed_judgment_in_another_run_matters_to_estimates_from_all_runs(estimate: str) -> None:
    # Had z turned out relevant, the pool would hold 2 instead of 1.
    scores = ragworth.score(shown(A="a", B="az"), judged({"a": 1.0, "z": None}), f"F_e(estimate={estimate})@1")
    assert answers(scores) == ["unjudged", "unjudged"]


def test_a_failed_judgment_within_twice_the_cutoff_matters_to_f_e() -> None:
    scores = relevance_scores("abc", judged({"a": 1.0, "b": None, "c": None}), ["F_e@1", "P@1"])
    assert answers(scores) == ["unjudged", 1.0]
    assert answers(relevance_scores("abc", judged({"a": 1.0, "c": None}), ["F_e@1"])) == [1.0]


GOOD = judged({"a": 1.0, "b": 1.0, "c": 1.0})


@pytest.mark.parametrize("estimate", ["double", "growth"])
def test_f_e_has_no_value_where_the_top_2k_are_unknown(estimate: str) -> None:
    # Both lists end at 3, so the fourth passages are unknown: N̂_p would be n_p by mistake.
    for cutoff in (2, 5, None):
        metric = METRICS.get("F_e").bind(cutoff, estimate=estimate)
        scores = ragworth.score(two_lists(3, 3), GOOD, metric)
        assert answers(scores) == ["cut-ranking"]
        assert f"{metric}: the top 2K are unknown for 1 context" in "\n".join(scores.notes)


def test_f_e_has_a_value_where_the_list_ended_or_is_deep_enough() -> None:
    # 1 / (1/2 + 2/2) with the top 2; 3 / (3/2 + 3/2) where another list of the system is longer.
    assert answers(ragworth.score(two_lists(3, 3), GOOD, "F_e@1")) == pytest.approx([2 / 3])
    assert answers(ragworth.score(two_lists(3, 9), GOOD, "F_e@5")) == pytest.approx([1.0])
    assert answers(ragworth.score(two_lists(3, 9), GOOD, "F_e")) == ["cut-ranking"]
    assert answers(ragworth.score(two_lists(3, 3), GOOD, "F_e(whole=true)@2")) == pytest.approx([2 / (2 / 2 + 3 / 2)])
    assert answers(ragworth.score(two_lists(0, 3), GOOD, "F_e@5")) == [0.0]


@pytest.mark.parametrize("options", [{"max_rank": 3}, {"judged_only": True}])
def test_f_e_knows_what_was_cut_before(options: dict[str, Any]) -> None:
    # Three of ten passages are left by -M; after -J's three judged ones, a fourth may follow below rank 10.
    contexts = two_lists(10, 10)
    assert answers(ragworth.score(contexts, GOOD, "F_e@2", **options)) == ["cut-ranking"]
    assert answers(ragworth.score(contexts, GOOD, "F_e@2")) == pytest.approx([2 / (2 / 2 + 3 / 2)])


def two_lists(first: int, second: int) -> ragworth.Contexts:
    """Passages a, b, … of a judged query and of another one."""
    rows = [(query, i + 1, chr(ord("a") + i)) for query, n in (("q", first), ("other", second)) for i in range(n)]
    frame = pl.DataFrame(rows, schema=["query", "rank", "passage"], orient="row")
    return ragworth.Contexts(frame, empty=[] if first else [("run", "q")])


@pytest.mark.parametrize("lost", [{"a": 0.5}, {"a": 0.5, "b": None}], ids=["never tried", "failed"])
def test_no_utility_without_every_abstention_probability(lost: dict[str, float | None]) -> None:
    metrics = ["UDCG", "Utility", "Distraction", "UDCG@1", "Utility@1", "Distraction@1"]
    scores = relevance_scores("ab", judged({"a": 1.0}, lost), metrics)
    assert answers(scores)[:3] == ["unjudged"] * 3
    assert answers(scores)[3:] == pytest.approx([0.622459331, 0.5, 0.0])  # σ(0.5), 0.5, none irrelevant


def test_an_impossible_probability_is_refused() -> None:
    with pytest.raises(TableError, match=r"abstention probability 1\.5 for query 'q', passage 'a'"):
        relevance_scores("a", judged({"a": 1.0}, {"a": 1.5}), ["UDCG"])


RATING_METRICS = ["Cov", "alpha_nDCG", "Den"]


def test_no_answerable_sub_question() -> None:
    scores = ragworth.score(shown(A="a"), None, RATING_METRICS, ratings=rated(a={"s": 2.0}), tokens=lengths(a=3))
    assert answers(scores) == ["no-answerable"] * 3


def test_failed_ratings_say_so_when_nothing_else_was_rated() -> None:
    """Whether anything can be answered is not known, which is another reason than that nothing can."""
    scores = ragworth.score(shown(A="a"), None, RATING_METRICS, ratings=rated(a={"s": None}), tokens=lengths(a=3))
    assert answers(scores) == ["unjudged"] * 3


def test_a_failed_rating_matters_unless_the_sub_question_is_answered_anyway() -> None:
    ratings = rated(a={"s": 4.0, "t": None}, b={"s": 4.0, "t": 4.0}, c={"s": None})
    for context, wanted in (("a", "unjudged"), ("b", 1.0), ("ac", "unjudged"), ("bc", 1.0)):
        assert answers(ragworth.score(shown(A=context), None, "Cov", ratings=ratings)) == [wanted], context


def test_a_failed_rating_matters_to_the_ideal_order() -> None:
    # Whether b answers t as well decides whether b alone is better than a.
    ratings = rated(a={"s": 4.0}, b={"s": 4.0, "t": None}, c={"t": 4.0})
    scores = ragworth.score(shown(A="a"), None, ["alpha_nDCG@1", "Cov"], ratings=ratings)
    assert answers(scores) == ["unjudged", 0.5]


def test_a_failed_rating_matters_to_the_required_subset() -> None:
    # If c answered t it alone would be required, 1 token; if not, a and b are, 20 tokens.
    ratings = rated(a={"s": 4.0}, b={"t": 4.0}, c={"s": 4.0, "t": None})
    scores = ragworth.score(shown(A="a"), None, ["Den", "Cov"], ratings=ratings, tokens=lengths(a=10, b=10, c=1))
    assert answers(scores) == ["unjudged", 0.5]


def test_no_density_without_all_lengths() -> None:
    ratings = rated(a={"s": 4.0, "t": 4.0}, b={"s": 4.0})
    for context, known in (("bx", "ab"), ("b", "b")):  # x is shown, a is required
        scores = ragworth.score(
            shown(A=context), None, ["Den", "Cov"], ratings=ratings, tokens=lengths(**dict.fromkeys(known, 5))
        )
        assert answers(scores) == ["no-tokens", 0.5], context


@pytest.mark.parametrize("context", ["a", "b"], ids=["shown", "required"])
def test_coverage_over_no_tokens_is_no_density(context: str) -> None:
    """Both contexts answer all there is, so 0, which says that nothing was answered, is wrong."""
    ratings = rated(a={"s": 4.0}, b={"s": 4.0})  # a is required
    scores = ragworth.score(shown(A=context), None, ["Den", "Cov"], ratings=ratings, tokens=lengths(a=0, b=3))
    assert answers(scores) == ["no-tokens", 1.0]


def test_what_nobody_rated_answers_nothing_at_any_threshold() -> None:
    """A threshold of 0 may be refused, but it must not turn what nobody rated into an answer."""
    try:
        metrics = [ragworth.parse("alpha_nDCG(eta=0)@2"), ragworth.parse("Cov(eta=0)")]
    except MetricError:
        return
    # Both queries are in one block, and r has more sub-questions than q.
    ratings = ragworth.Ratings(
        [
            *rated(a={"s": 0.0}).frame.to_dicts(),
            *rated("r", a={"s": 5.0, "t": 5.0, "u": 5.0}, b={"s": 5.0}).frame.to_dicts(),
        ]
    )
    contexts = {"q": {"a": 2.0, "x": 1.0}, "r": {"b": 2.0, "x": 1.0}}
    scores = ragworth.score(contexts, None, metrics, ratings=ratings)
    # q: a answers s with 0. r: b answers one of three; the ideal is a, then b: 1 / (3 + 0.5/log2(3)).
    assert answers(scores) == pytest.approx([1.0, 0.301617, 1.0, 1 / 3], abs=5e-7)


@pytest.mark.parametrize("metric", ["nDCG", "nDCG(gain=exponential)"])
@pytest.mark.parametrize("grade", [900.0, 2000.0, 1e308, float("inf")])
def test_no_value_is_nan(metric: str, grade: float) -> None:
    """Refused, missing or right, but never a value that is not a number."""
    try:
        (found,) = answers(relevance_scores("ab", judged({"b": grade}), [metric]))
    except InputError:
        assert grade > 1000  # 2 to that power is beyond what a double holds
        return
    assert found == ("overflow" if grade == float("inf") else pytest.approx(0.6309297535714575))  # 1/log2(3)


def test_a_rank_nobody_listed_is_a_passage_nobody_judged() -> None:
    judgments = judged({"a": 1.0, "b": 1.0}, {"a": 0.5, "b": 0.5})
    metrics = ["P", "RR", "AP", "Judged", "T", "UDCG", "UDCG@1"]
    scores = ragworth.score(shown(A="a b"), judgments, metrics)
    *known, udcg, first = answers(scores)
    # Three were shown: 2/3, 1, (1 + 2/3)/2, 2/3, 2/2 − (1/3)/2.
    assert known == pytest.approx([2 / 3, 1.0, 5 / 6, 2 / 3, 5 / 6])
    assert udcg == "unjudged"  # nothing is known of the second
    assert first == pytest.approx(0.622459331)  # σ(0.5)
    assert scores.notes == ("A: 1 context with gaps in the ranks; the missing passages count as shown but unjudged",)


def test_no_density_over_a_rank_nobody_listed() -> None:
    scores = ragworth.score(shown(A="a b"), None, ["Den", "Cov"], ratings=rated(a={"s": 3.0}), tokens=lengths(a=1, b=1))
    assert answers(scores) == ["no-tokens", 1.0]


QRELS = {"q1": {"a": 1}, "q2": {"a": 1}, "q3": {"a": 1}}


def test_queries_that_a_run_lacks() -> None:
    everything = ragworth.score({"q1": {"a": 1.0}}, QRELS, "P")
    assert everything.frame["query"].to_list() == ["q1", "q2", "q3"]
    assert answers(everything) == [1.0, 0.0, 0.0]
    assert everything.notes == ("run: 2 of 3 judged queries are not in the run and count as empty contexts",)
    present = ragworth.score({"q1": {"a": 1.0}}, QRELS, "P", complete=False)
    assert answers(present) == [1.0, "left-out", "left-out"]
    assert present.notes == ("run: 2 of 3 judged queries are not in the run and are left out",)


def test_each_system_lacks_its_own_queries() -> None:
    contexts = {"system": ["A", "B", "B"], "query": ["q1", "q2", "q3"], "passage": ["a"] * 3, "score": [1.0] * 3}
    scores = ragworth.score(contexts, QRELS, "P", complete=False)
    assert answers(scores, "A") == [1.0, "left-out", "left-out"]
    assert answers(scores, "B") == ["left-out", 1.0, 1.0]


def test_nothing_retrieved_is_a_value_and_not_left_out() -> None:
    contexts = ragworth.Contexts({"q1": {"a": 1.0}, "q2": {}})
    assert contexts.empty == {("run", "q2")}
    assert answers(ragworth.score(contexts, QRELS, "P", complete=False)) == [1.0, 0.0, "left-out"]
    nothing = ragworth.Contexts({"query": [], "passage": [], "score": []}, empty=[("none", "q1")])
    both = ragworth.score([contexts, nothing], QRELS, ["P"])
    assert answers(both, "none") == [0.0, 0.0, 0.0]
    assert nothing.systems == ["none"]


def test_queries_that_nobody_judged() -> None:
    strangers = {f"x{i}": {"a": 1.0} for i in range(7)}
    scores = ragworth.score({"q1": {"a": 1.0}, **strangers}, {"q1": {"a": 1}}, "P")
    assert scores.frame["query"].to_list() == ["q1"]
    (note,) = scores.notes
    assert note.startswith("run: 7 queries not judged")
    assert "'x0', 'x1', 'x2' and 4 more" in note


def test_a_note_when_no_passage_is_judged() -> None:
    assert ragworth.score({"q": {"a": 1.0}}, {"q": {"b": 1}}, "P").notes == (
        "run: none of the passages it shows is judged; check that passage ids are written the same way",
    )


def test_no_such_note_when_the_judged_passage_stands_below_the_cutoff() -> None:
    scores = ragworth.score({"q": {"a": 2.0, "b": 1.0}}, {"q": {"b": 1}}, "P@1")
    assert answers(scores) == [0.0]
    assert scores.notes == ()


def test_the_counter_of_tokens_is_named() -> None:
    tokens = ragworth.Tokens.of(lengths(a=3), counter="words")
    scores = ragworth.score(shown(A="a"), None, ["Den", "Cov"], ratings=rated(a={"s": 3.0}), tokens=tokens)
    assert scores.notes == ("tokens counted by: words",)


def test_nothing_in_common_is_an_error() -> None:
    with pytest.raises(TableError) as caught:
        ragworth.score({"1": {"a": 1.0}}, {"q1": {"a": 1}}, "P")
    assert caught.value.found == "run: none of its 1 query is judged"
    assert caught.value.more == ("the run has '1'", "the judged queries are 'q1'")
    with pytest.raises(TableError, match="none of its 1 query is rated"):
        ragworth.score({"1": {"a": 1.0}}, None, "Cov", ratings=rated(a={"s": 3.0}))


def test_no_contexts_are_an_error() -> None:
    empty = ragworth.Contexts(pl.DataFrame(schema={"query": pl.String, "passage": pl.String, "score": pl.Float64}))
    with pytest.raises(TableError, match="no contexts to score"):
        ragworth.score(empty, {"q": {"a": 1}}, "P")


def test_all_that_is_lacking_is_said_at_once() -> None:
    with pytest.raises(MetricError) as caught:
        ragworth.score({"q": {"a": 1.0}}, None, ["P@5", "UDCG", "Cov", "Den", "F_e(estimate=pool)"])
    said = [line.split(" needs ") for line in caught.value.more]
    assert [metric for metric, _ in said] == [
        *("P@5", "UDCG", "UDCG", "Cov", "Den", "Den"),
        *("F_e(estimate=pool)", "F_e(estimate=pool)"),
    ]
    assert {what.partition(" (")[0] for _, what in said} == {
        "relevance judgments",
        "abstention probabilities",
        "ratings of sub-questions",
        "passage lengths",
        "at least two runs",
    }


DOWNSTREAM_METRICS = ["eRAG", "eRAG(of=max)", "eRAG_nDCG", "eRAG_nDCG(ideal=retrieved)", "eRAG_AP"]


@pytest.mark.parametrize("lost", [{"a": 0.5}, {"a": 0.5, "b": None}], ids=["never tried", "failed"])
def test_no_downstream_value_without_every_passage_s_score(lost: dict[str, float | None]) -> None:
    scores = relevance_scores("ab", judged({}, downstream=lost), [*DOWNSTREAM_METRICS, "eRAG@1", "eRAG(of=max)@1"])
    assert answers(scores) == [*["unjudged"] * 5, 0.5, 0.5]


def test_a_failed_downstream_score_elsewhere_matters_to_the_ideal_order() -> None:
    scores = relevance_scores("a", judged({}, downstream={"a": 0.5, "z": None}), DOWNSTREAM_METRICS)
    assert answers(scores) == [0.5, 0.5, "unjudged", 1.0, "unjudged"]
    known = relevance_scores("a", judged({}, downstream={"a": 0.5, "z": 1.0}), DOWNSTREAM_METRICS)
    assert answers(known) == pytest.approx([0.5, 0.5, 0.5 / (1 + 0.5 / 1.584962501), 1.0, 0.5 / 1.5])


def test_no_likelihood_without_every_passage_s_own() -> None:
    scores = relevance_scores("ab", judged({}, likelihood={"a": -2.0}), ["Likelihood", "Likelihood(of=max)@1"])
    assert answers(scores) == ["unjudged", -2.0]


def test_queries_are_those_with_the_judgments_that_are_read() -> None:
    judgments = ragworth.Judgments.concat([judged({"a": 1.0}), judged({}, query="r", downstream={"a": 0.5})])
    contexts = {"q": {"a": 1.0}, "r": {"a": 1.0}}
    scores = ragworth.score(contexts, judgments, ["P", "eRAG"])
    assert scores.frame.select("query", "metric", "value").rows() == [("q", "P", 1.0), ("r", "eRAG", 0.5)]


@pytest.mark.parametrize(
    ("metric", "aspect", "value", "said"),
    [
        ("eRAG", "downstream", 45.0, r"downstream score 45\.0 for query 'q', passage 'a'"),
        ("eRAG", "downstream", -0.1, r"downstream score -0\.1 for query"),
        ("Likelihood", "likelihood", 0.5, r"answer likelihood 0\.5 for query"),
    ],
)
def test_a_value_off_the_scale_is_refused(metric: str, aspect: str, value: float, said: str) -> None:
    with pytest.raises(TableError, match=said):
        relevance_scores("a", judged({}, None, "q", **{aspect: {"a": value}}), [metric])


def test_columns_of_downstream_scores_and_likelihoods_are_judgments() -> None:
    table = {"query": ["q"], "passage": ["a"], "downstream": [0.25], "likelihood": [-1.5]}
    assert answers(ragworth.score({"q": {"a": 1.0}}, table, ["eRAG", "Likelihood"])) == [0.25, -1.5]


def test_what_downstream_metrics_lack_is_said() -> None:
    with pytest.raises(MetricError) as caught:
        relevance_scores("a", judged({"a": 1.0}), ["eRAG@5", "Likelihood"])
    assert caught.value.more == (
        "eRAG@5 needs downstream scores of passages (--judgments FILE, aspect 'downstream')",
        "Likelihood needs answer likelihoods (--judgments FILE, aspect 'likelihood')",
    )


def test_queries_without_a_relevant_passage_are_noted() -> None:
    run = {"q1": {"a": 2.0}, "q2": {"a": 1.0}}
    (note,) = ragworth.score(run, {"q1": {"a": 1}, "q2": {"a": 0}}, ["nDCG@5", "P@5"]).notes
    assert note.startswith("1 of 2 judged queries has no passage with a relevance above 0")
    (note,) = ragworth.score(run, {"q1": {"a": 0.9}, "q2": {"a": 0.2}}, ["nDCG@5", "P@5", "RR"]).notes
    assert note.startswith("no judged passage has a relevance of 1 or more (the highest is 0.9)")
    assert note.endswith("for P@5, RR")


def test_ids_that_differ_only_in_zeros_spaces_or_case_are_noted() -> None:
    run = {"7": {"a": 1.0}, " Q1": {"a": 1.0}, "100": {"a": 1.0}}
    notes = ragworth.score(run, {q: {"a": 1} for q in ("007", "q1", "100")}, "P@1").notes
    assert any("2 queries differ from judged ones only in leading zeros" in note and "'007'" in note for note in notes)
    with pytest.raises(TableError, match="'7' and '007'"):
        ragworth.score({"7": {"a": 1.0}}, {"007": {"a": 1}}, "P@1")


def test_passages_whose_ids_are_spelt_otherwise_are_noted() -> None:
    labels = {"q": {"d1": 1, "doc é": 1, "5": 1, "d2": 0}}
    run = {"q": {"d2": 5.0, "D1": 4.0, "doc e\u0301": 3.0, "5.0": 2.0, "other": 1.0}}
    (note,) = ragworth.score(run, labels, "P@5").notes
    assert note.startswith("run: 3 passages differ from judged ones only in") and "('D1' and 'd1')" in note
    assert ragworth.score({"q": {"d1": 2.0, "D1": 1.0}}, labels, "P@5").notes == ()  # both exist
    titles = {"q1": {"EBay": 1}, "q2": {"eBay": 1, "x²": 1, "v1": 1}}
    run = {"q1": {"eBay": 1.0}, "q2": {"eBay": 3.0, "x2": 2.0, "v1.0": 1.0}}
    assert ragworth.score(run, titles, "P@5").notes == ()  # different titles


def test_passages_without_a_label_that_count_as_misleading_are_noted() -> None:
    known = judged({"a": 1.0}, {"a": 0.2, "b": 0.1})
    notes = ragworth.score(shown(A="ab"), known, ["UDCG", "Utility", "UDCG@1"]).notes
    assert notes == ("A: 1 of 2 passages shown has no relevance label and counts as irrelevant for UDCG, Utility",)


def test_metrics_that_read_further_than_people_labelled_are_noted() -> None:
    run = {f"q{q}": {f"d{d}": 9.0 - d for d in range(6)} for q in range(8)}
    labels = {query: {f"d{d}": d % 2 for d in range(3)} for query in run}
    metrics = ["P@5", "P@3", "nDCG", "Judged@5"]
    (note,) = ragworth.score(run, labels, metrics).notes
    assert note.startswith("run: labels end at rank 3, and 8 of 8 contexts go on;") and "for P@5, nDCG, so" in note
    assert ragworth.score(run, {query: {"d0": 1} for query in run}, metrics).notes == ()  # relevant passages alone
    assert ragworth.score(run, {query: {"d0": 0, "d2": 1} for query in run}, metrics).notes == ()  # not a depth
    labels = {query: {"d0": 1, "hard": 0} for query in run}
    assert ragworth.score(run, labels, metrics).notes == ()  # a perfect retriever, and negatives it doesn't return
