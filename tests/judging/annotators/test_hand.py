"""Every formula worked by hand: the model's probabilities are given, the arithmetic stands beside the case."""

from __future__ import annotations

import math
from typing import Any

import polars as pl
import pytest

import ragworth
from ragworth import Ratings
from ragworth.calls.serialization import call_key, model_digest
from ragworth.judging.annotators.confidence import key_tokens
from ragworth.judging.judge import JudgingResult
from ragworth.judging.runner import annotate
from ragworth.llm.contract import Choose, Failure, Generate, Request, Score, Trace
from ragworth.llm.scripted import Scripted, ScriptedReply
from ragworth.studies.key_token_tuning import GRID_A, GRID_TOP, tune_key_tokens
from ragworth.text_match.overlap import COMPARISONS
from tests.judging.annotators.samples import PASSAGES, QUESTIONS, RUN, WORLD, Sampler, by_passage, column, three, trace

E = math.exp


# Abstention


def declines(p: float, **others: float) -> dict[str, float]:
    return {"NO-RESPONSE": p, **others}


def test_abstention_by_the_first_token() -> None:
    script = by_passage({"p1": declines(0.25, I=0.125, Sorry=0.0625), "p2": declines(0.75)}, declines(0.9))
    found = annotate("abstention", RUN, WORLD, Scripted(script), k=2)
    assert column(found, "value") == {"p1": 0.25, "p2": 0.75}
    assert column(found, "p_raw") == {"p1": 0.25, "p2": 0.75}
    # other ways to begin a refusal, and what is left: 1 − 0.25 − 0.1875
    assert column(found, "declines") == {"p1": 0.1875, "p2": 0.0}
    assert column(found, "answers") == {"p1": 0.5625, "p2": 0.25}
    assert column(found, "low") == column(found, "high") == column(found, "value")
    assert all(source.endswith("· first-token") for source in found.frame["source"])


def test_abstention_by_the_whole_sequence_is_another_question_to_the_model() -> None:
    def script(request: Request) -> ScriptedReply:
        assert isinstance(request, Choose)
        return declines(0.5) if request.estimator == "first-token" else declines(0.25)

    found = annotate("abstention", RUN, WORLD, Scripted(script), k=1, estimator="sequence")
    assert column(found, "value") == {"p1": 0.25}
    assert found.frame["source"][0].endswith("· sequence")


def test_abstention_by_samples() -> None:
    # 12 of 16: ten say the label (in any case, with more after it), two decline in other words, four answer.
    texts = (
        ["NO-RESPONSE"] * 8 + ["no-response.", " NO-RESPONSE: it is not there"] + ["I don't know."] * 2 + ["Ann"] * 4
    )
    model = Sampler(texts)
    found = annotate("abstention", RUN, WORLD, model, k=1, estimator="sampled", seed=7)
    row = found.frame.row(0, named=True)
    assert (row["value"], row["p_raw"], row["declines"], row["answers"]) == (0.75, 0.75, 0.125, 0.25)
    # Wilson with z = 1.96, z² = 3.8415, n = 16:
    #   middle  0.75 + 3.8415/32                        = 0.87005
    #   half    1.96·√(0.75·0.25/16 + 3.8415/(4·16²))   = 1.96·√0.0154702 = 0.24378
    #   scale   1 + 3.8415/16                           = 1.24009
    assert row["low"] == pytest.approx((0.87005 - 0.24378) / 1.24009, abs=1e-4)
    assert row["high"] == pytest.approx((0.87005 + 0.24378) / 1.24009, abs=1e-4)
    assert row["source"].endswith("· sampled(16)")
    assert row["raw"].split("\n")[0] == "NO-RESPONSE"
    assert (model.seen[0].n, model.seen[0].temperature, model.seen[0].seed) == (16, 1.0, 7)


def test_samples_in_which_nothing_stands_are_not_counted_and_the_source_says_how_many_were() -> None:
    found = annotate("abstention", RUN, WORLD, Sampler(["NO-RESPONSE", "", "Ann", " \n"]), k=1, estimator="sampled")
    row = found.frame.row(0, named=True)
    assert row["value"] == 0.5  # 4 of 8, of 16 asked for
    assert row["source"].endswith("· sampled(8)")


def test_all_samples_decline_or_none_does() -> None:
    every = annotate("abstention", RUN, WORLD, Sampler(["NO-RESPONSE"]), k=1, estimator="sampled", samples=4, floor=0)
    # Wilson, 4 of 4: low = 1/(1 + z²/n) = 1/(1 + 0.96036) = 0.51011
    assert every.frame[["value", "low", "high"]].row(0) == (1.0, pytest.approx(0.51011, abs=1e-4), 1.0)
    none = annotate("abstention", RUN, WORLD, Sampler(["Ann"]), k=1, estimator="sampled", samples=4, floor=0)
    assert none.frame[["value", "low", "high"]].row(0) == (0.0, 0.0, pytest.approx(0.48989, abs=1e-4))


# Utility and distraction


def judged(**p_abstain: float) -> JudgingResult:
    script = by_passage({name: declines(p) for name, p in p_abstain.items()}, declines(0.9))
    return annotate("abstention", RUN, WORLD, Scripted(script))


QRELS = {"query": ["q1"] * 3, "passage": ["p1", "p2", "p3"], "relevance": [1, 0, 0]}


def both(found: JudgingResult, **relevance: Any) -> ragworth.Judgments:
    assert isinstance(found.table, ragworth.Judgments)
    return ragworth.Judgments.concat([found.table, ragworth.Judgments(relevance or QRELS)])


def test_utility_distraction_and_classes() -> None:
    table = ragworth.utilities(both(judged(p1=0.25, p2=0.875, p3=0.125, p4=0.5)))
    # relevant: u = 1 − 0.25. Irrelevant: u = −(1 − p), effect 1 − p: 0.125 < 0.2 weak, 0.875 > 0.8 hard,
    # 0.5 neither. p4 was never judged and counts as irrelevant.
    assert table.select("passage", "utility", "distraction", "class").rows() == [
        ("p1", 0.75, None, "relevant"),
        ("p2", -0.125, 0.125, "weak-distractor"),
        ("p3", -0.875, 0.875, "hard-distractor"),
        ("p4", -0.5, 0.5, "distractor"),
    ]


def test_a_distractor_is_weak_below_and_hard_above_the_bounds_not_at_them() -> None:
    # 1 − 0.8 is 0.2, which is not below 0.2, though computers say 0.19999999999999996; 1 − 0.2 is not above 0.8.
    table = ragworth.utilities(both(judged(p1=0.25, p2=0.8, p3=0.2, p4=0.5)))
    assert table["class"].to_list() == ["relevant", "distractor", "distractor", "distractor"]


def test_a_level_of_relevance() -> None:
    found = both(judged(p1=0.25, p2=0.5, p3=0.5, p4=0.5), query=["q1"] * 2, passage=["p1", "p2"], relevance=[1, 2])
    assert ragworth.utilities(found, 2)["utility"].to_list() == [-0.75, 0.5, -0.5, -0.5]


def test_a_judgment_that_failed_gives_no_utility_and_says_why() -> None:
    relevance = {
        "query": ["q1"] * 2,
        "passage": ["p1", "p2"],
        "aspect": ["relevance"] * 2,
        "value": [1.0, None],
        "status": ["ok", "unparsable"],
    }
    table = ragworth.utilities(both(judged(p1=0.25, p2=0.5, p3=0.5, p4=0.5), **relevance))
    assert table.select("utility", "distraction", "class", "status").row(1) == (None, None, None, "unparsable")


# Relevance


def test_relevance_by_two_labels() -> None:
    script = by_passage({"p1": {"YES": 0.6, "NO": 0.2}, "p2": {"YES": 0.1, "NO": 0.3}})
    found = annotate("relevance", RUN, WORLD, Scripted(script), k=2)
    assert column(found, "value") == {"p1": 1.0, "p2": 0.0}
    # among the labels: 0.6/0.8 and 0.1/0.4
    assert column(found, "p") == pytest.approx({"p1": 0.75, "p2": 0.25})
    assert column(found, "mass") == pytest.approx({"p1": 0.8, "p2": 0.4})


def test_relevance_in_grades() -> None:
    script = by_passage({"p1": {"0": 0.1, "2": 0.3, "3": 0.4}, "p2": {"0": 0.5, "3": 0.3}})
    found = annotate("relevance", RUN, WORLD, Scripted(script), k=2, graded=True)
    assert column(found, "value") == {"p1": 3.0, "p2": 0.0}
    # (0·0.1 + 2·0.3 + 3·0.4) / 0.8 and 3·0.3 / 0.8
    assert column(found, "expected") == pytest.approx({"p1": 2.25, "p2": 1.125})


def test_a_judge_of_relevance_sees_accepted_answers_and_a_grader_does_not() -> None:
    prompts: list[str] = []

    def script(request: Request) -> ScriptedReply:
        prompts.append("\n".join(message.content for message in request.prompt.messages))
        return {"YES": 1.0} if isinstance(request, Choose) and "YES" in request.labels else {"3": 1.0}

    for graded in (False, True):
        annotate("relevance", RUN, WORLD, Scripted(script), k=1, graded=graded)
    assert ["Accepted answer: Ann Lee" in prompt for prompt in prompts] == [True, False]


def test_relevance_by_what_a_model_writes() -> None:
    script = by_passage({"p1": "YES", "p2": "No, it does not."})
    found = annotate("relevance", RUN, WORLD, Scripted(script, abilities=["generate"]), k=2)
    assert column(found, "value") == {"p1": 1.0, "p2": 0.0}
    assert column(found, "raw") == {"p1": "YES", "p2": "No, it does not."}
    assert column(found, "p") == {"p1": None, "p2": None}
    assert all(source.endswith("· parsed · accepted answers shown") for source in found.frame["source"])


# Likelihood


def test_the_best_of_the_accepted_answers() -> None:
    def script(request: Request) -> ScriptedReply:
        assert isinstance(request, Score)
        if PASSAGES["p1"] in request.prompt.messages[-1].content:
            return trace([-1.0], [0.5]) if request.continuation == "Ann" else trace([-0.25, -0.5], [0.5, 0.5])
        return trace([-0.5], [0.5]) if request.continuation == "Ann" else trace([-0.25, -0.75], [0.5, 0.5])

    found = annotate("likelihood", RUN, WORLD, Scripted(script), k=2)
    # p1: −1.0 against (−0.25 − 0.5)/2 = −0.375. p2: −0.5 against −0.5, so that the first stands.
    assert column(found, "value") == {"p1": -0.375, "p2": -0.5}
    assert column(found, "answer") == {"p1": "Ann Lee", "p2": "Ann"}
    assert column(found, "logprob") == {"p1": -0.75, "p2": -0.5}
    assert column(found, "tokens") == {"p1": 2, "p2": 1}
    scores = ragworth.score({"q1": {"p1": 2.0, "p2": 1.0}}, found.table, ["Likelihood", "Likelihood(of=max)"])
    assert scores.frame["value"].to_list() == [-0.4375, -0.375]  # the mean of both, and the higher


# Downstream

SAID = "Lee, Ann it was"
BY_HAND = {
    "em": 0.0,
    # "lee ann it was" and "ann lee" share 2 tokens: precision 2/4, recall 2/2; with "ann" 1/4 and 1/1: less
    "f1": 2 / 3,
    # "ann" stands in it; "ann lee", in this order, does not
    "containment": 1.0,
    # the longest common subsequence with "ann lee" has 1 token: 1/4 and 1/2 make 1/3; with "ann" 1/4 and 1/1 make 2/5
    "rouge-l": 0.4,
    "rouge-l-unicode": 0.4,
}


@pytest.mark.parametrize("name", BY_HAND)
def test_downstream_by_each_comparison(name: str) -> None:
    found = annotate("downstream", RUN, WORLD, Scripted(by_passage({"p1": SAID, "p2": "ANN"})), k=2, compare=name)
    assert column(found, "value") == {"p1": pytest.approx(BY_HAND[name]), "p2": 1.0}
    assert column(found, "raw") == {"p1": SAID, "p2": "ANN"}
    assert found.frame["source"][0].endswith(f"· {name}")
    assert name in COMPARISONS


def test_an_answer_that_declines_matches_nothing() -> None:
    found = annotate("downstream", RUN, WORLD, Scripted({"*": "NO-RESPONSE"}), k=1)
    assert found.frame[["value", "status"]].row(0) == (0.0, "ok")


# Confidence: GroGU

# Four tokens with the context …
GROUNDED = trace([-0.1, -0.2, -0.7, -1.0], [0.2, 0.4, 0.9, 0.5])
# … the same four without: entropy changes by 0.04, 0.5, 0 and 0.4, surprisal by 0.02, 0, 1 and 0.01 …
FORCED = trace([-0.12, -0.2, -1.7, -1.01], [0.24, 0.9, 0.9, 0.1])
# … and three of an answer of its own: above 0.05 are the second by entropy, the second and third by surprisal.
ALONE = trace([-0.02, -0.3, -1.18], [0.01, 0.6, 0.05])

WITH = {
    "PPL": -E(0.5),  # (0.1 + 0.2 + 0.7 + 1.0) / 4
    "KeyPPL": -E(0.7),  # the third token alone
    "Entropy": -0.5,  # (0.2 + 0.4 + 0.9 + 0.5) / 4
    "KeyEntropy": -0.45,  # (0.4 + 0.5) / 2: the second and the fourth
}
WITHOUT = {
    "PPL": -E(0.5),  # (0.02 + 0.3 + 1.18) / 3
    "KeyPPL": -E(0.74),  # (0.3 + 1.18) / 2
    "Entropy": -0.22,  # (0.01 + 0.6 + 0.05) / 3
    "KeyEntropy": -0.6,
}


def sure(forced: Trace = FORCED, alone: Trace = ALONE, grounded: Trace = GROUNDED, **settings: Any) -> JudgingResult:
    return annotate("confidence", {"q1": {"p1": 1.0}}, WORLD, Scripted(three(grounded, forced, alone)), **settings)


def test_confidence_in_an_answer_with_the_context() -> None:
    found = sure(relative=False)
    assert column(found, "value", "aspect") == pytest.approx(WITH, abs=1e-12)
    first = found.frame.row(0, named=True)
    assert first["raw"] == "t0 t1 t2 t3 "
    assert first["key"] == [False, True, False, True]
    assert first["entropies"] == [0.2, 0.4, 0.9, 0.5]
    assert first["surprisals_alone"] == [0.12, 0.2, 1.7, 1.01]
    assert "a=0.05 top=0.1 · absolute" in first["source"]


def test_confidence_beyond_that_without_the_context() -> None:
    found = sure()
    expected = {name: WITH[name] - WITHOUT[name] for name in WITH}
    assert column(found, "value", "aspect") == pytest.approx(expected, abs=1e-12)
    assert found.frame["answer_alone"][0] == "t0 t1 t2 "
    assert "relative" in found.frame["source"][0]


@pytest.mark.parametrize(
    ("top", "entropy", "surprisal"),
    [
        (0.1, 0.9, 1.0),  # a tenth of four tokens: at least one, the highest
        (0.0, 0.9, 1.0),
        (0.5, 0.7, 0.85),  # two: (0.9 + 0.5)/2 and (1.0 + 0.7)/2
        (1.0, 0.5, 0.5),  # all
    ],
)
def test_without_key_tokens_the_top_share_is_taken(top: float, entropy: float, surprisal: float) -> None:
    found = sure(forced=GROUNDED, relative=False, top=top)
    assert column(found, "value", "aspect") == pytest.approx(
        WITH | {"KeyEntropy": -entropy, "KeyPPL": -E(surprisal)}, abs=1e-12
    )


def test_a_tenth_of_ten_tokens_is_one_and_of_twenty_two() -> None:
    for number in (10, 20, 30, 70):
        values = [float(n) for n in range(number)]
        assert len(key_tokens(values, values, 0.05, 0.1)) == number // 10
        assert key_tokens(values, values, 0.05, 0.1)[-1] == number - 1


def test_without_a_context_the_top_share_is_taken_where_nothing_is_above_the_bound() -> None:
    found = sure(alone=trace([-0.01, -0.05, -0.03], [0.01, 0.04, 0.05]))
    # none above 0.05: the highest entropy is 0.05, the highest surprisal 0.05
    assert column(found, "value", "aspect") == pytest.approx(
        {
            "PPL": -E(0.5) + E(0.03),
            "KeyPPL": -E(0.7) + E(0.05),
            "Entropy": -0.5 + 0.1 / 3,
            "KeyEntropy": -0.45 + 0.05,
        },
        abs=1e-12,
    )


@pytest.mark.parametrize(("relative", "calls"), [(True, 5), (False, 4)])
def test_what_is_the_same_for_all_contexts_of_a_query_is_asked_once(relative: bool, calls: int) -> None:
    # Two contexts: an answer and a reading of it each (the readings differ), and one answer without any.
    def script(request: Request) -> ScriptedReply:
        if isinstance(request, Score):
            return -1.0
        return "x y" if PASSAGES["p2"] in request.prompt.messages[-1].content else "u v w"

    model = Scripted(script)
    run = {"system": ["A", "B"], "query": ["q1"] * 2, "passage": ["p1", "p2"], "rank": [1, 1]}
    found = annotate("confidence", run, WORLD, model, relative=relative)
    assert found.frame.height == 8
    assert model.calls == calls


def test_the_calls_of_confidence_keep_their_keys() -> None:
    """Stored calls are found again: an answer with the context, one without, and the first read without."""
    requests: list[Request] = []
    reply = three(GROUNDED, FORCED, ALONE)

    def script(request: Request) -> ScriptedReply:
        requests.append(request)
        return reply(request)

    model = Scripted(script)
    annotate("confidence", {"q1": {"p1": 2.0, "p2": 1.0}}, WORLD, model)
    keys = [call_key(model_digest(model.card), request).hex()[:16] for request in requests]
    assert keys == ["bce546c7eea4eaa4", "77250a1ccfc5aedb", "06c348d17a22e74e"]


def test_no_token_is_called_key_if_the_second_reading_failed() -> None:
    script = three(GROUNDED, Failure("timed-out", retry=False), ALONE)
    found = annotate("confidence", {"q1": {"p1": 1.0}}, WORLD, Scripted(script), relative=False)
    first = found.frame.row(0, named=True)
    assert first["key"] is None and first["entropies_alone"] is None
    assert (first["tokens"], first["finish"]) == (4, "stop") and first["prompt_tokens"] > 0


def test_measures_that_need_less_ask_less() -> None:
    requests: list[Request] = []

    def script(request: Request) -> ScriptedReply:
        requests.append(request)
        return GROUNDED

    found = annotate("confidence", RUN, WORLD, Scripted(script), measures="PPL", relative=False)
    assert column(found, "value", "aspect") == pytest.approx({"PPL": -E(0.5)})
    (only,) = requests
    assert isinstance(only, Generate)
    assert (only.detail, only.temperature) == ("logprobs", 0.0)


def test_every_passage_as_a_context_of_its_own() -> None:
    found = sure(relative=False, each=True)
    assert isinstance(found.table, ragworth.Judgments)
    assert column(found, "value", "passage", "aspect") == pytest.approx(
        {("p1", name): value for name, value in WITH.items()}, abs=1e-12
    )


def test_the_whole_context_is_shown_in_its_order() -> None:
    prompts: list[str] = []

    def script(request: Request) -> ScriptedReply:
        prompts.append(request.prompt.messages[-1].content)
        return "x"

    annotate("confidence", RUN, WORLD, Scripted(script), measures="Entropy", relative=False, k=3)
    places = [prompts[0].index(PASSAGES[name]) for name in ("p1", "p2", "p3")]
    assert places == sorted(places)
    assert PASSAGES["p4"] not in prompts[0]


# Ratings


def test_the_likeliest_rating_and_the_expected_one_feed_coverage() -> None:
    """Cov is the share of answerable sub-questions (η = 3) that some passage answers."""

    def script(request: Request) -> ScriptedReply:
        last = request.prompt.messages[-1].content
        if PASSAGES["p1"] in last:
            # "Who?": 5. "When?": likeliest 2, though the mean is 2·0.4 + 4·0.3 + 5·0.3 = 3.5
            return {"5": 1.0} if QUESTIONS["a"] in last else {"2": 0.4, "4": 0.3, "5": 0.3}
        return {"0": 0.5, "1": 0.25} if QUESTIONS["a"] in last else {"4": 0.5}

    found = annotate("ratings", RUN, WORLD, Scripted(script), k=2)
    assert isinstance(found.table, Ratings)
    assert column(found, "value", "passage", "subquestion") == {
        ("p1", "a"): 5.0,
        ("p1", "b"): 2.0,
        ("p2", "a"): 0.0,
        ("p2", "b"): 4.0,
    }
    assert column(found, "expected", "passage", "subquestion") == pytest.approx(
        {("p1", "a"): 5.0, ("p1", "b"): 3.5, ("p2", "a"): 1 / 3, ("p2", "b"): 4.0}
    )
    assert column(found, "mass", "passage", "subquestion")["p2", "a"] == 0.75
    run = {"q1": {"p1": 2.0, "p2": 1.0}}
    # Both sub-questions can be answered. p1 answers one of them; by its mean it answers both.
    likeliest = ragworth.score(run, None, ["Cov@1", "Cov@2"], ratings=found.table)
    assert likeliest.frame["value"].to_list() == [0.5, 1.0]
    expected = Ratings(found.frame.with_columns(pl.col("expected").alias("value")))
    assert ragworth.score(run, None, ["Cov@1"], ratings=expected).frame["value"].to_list() == [1.0]


# Tuning


def told(query: str, passage: str, values: list[float], alone: list[float]) -> dict[str, Any]:
    """A row of confidence whose entropies and surprisals are the same numbers."""
    return {
        "query": query,
        "passage": passage,
        "answer_tokens": ["x"] * len(values),
        "surprisals": values,
        "entropies": values,
        "surprisals_alone": alone,
        "entropies_alone": alone,
    }


# a = 0.05: the first token of "good" changes by 0.1 and is key (−0.1), the second of "bad" by 0.6 (−0.6): won.
# a = 0.5: no key token of "good", so its highest (−0.8), against −0.6: lost.
NARROW = ([0.1, 0.8], [0.2, 0.8]), ([0.5, 0.6], [0.5, 0.0])
# a = 0.05: both tokens of "good" (−0.4) against the second of "bad" (−0.3): lost.
# a = 0.5: the second of "good" (−0.1) against the highest of "bad" (−0.3): won.
WIDE = ([0.7, 0.1], [0.6, 0.9]), ([0.2, 0.3], [0.2, 0.36])


def validation(*kinds: Any) -> tuple[pl.DataFrame, pl.DataFrame]:
    """A query for each kind, with a good and a bad passage, and which is which."""
    rows = [
        told(f"q{n}", name, *tokens)
        for n, kind in enumerate(kinds)
        for name, tokens in zip(("good", "bad"), kind, strict=True)
    ]
    frame = pl.DataFrame(rows)
    return frame, frame.select("query", "passage", (pl.col("passage") == "good").cast(pl.Float64).alias("value"))


def test_win_rates_and_the_best_settings() -> None:
    found = tune_key_tokens(*validation(NARROW, NARROW, WIDE), a=(0.5, 0.05), top=(0.1,), folds=3)
    assert [(one.measure, one.a, one.top, one.pairs, one.queries) for one in found.best] == [
        ("KeyPPL", 0.05, 0.1, 3, 3),
        ("KeyEntropy", 0.05, 0.1, 3, 3),
    ]
    assert [one.win_rate for one in found.best] == pytest.approx([2 / 3] * 2)
    rates = {row[:2]: row[3] for row in found.grid.rows()}
    assert rates == pytest.approx(
        {("KeyPPL", 0.5): 1 / 3, ("KeyPPL", 0.05): 2 / 3, ("KeyEntropy", 0.5): 1 / 3, ("KeyEntropy", 0.05): 2 / 3}
    )


def test_cross_validation_never_looks_at_what_it_is_tried_on() -> None:
    # Two queries that want opposite settings, each a fold: what is chosen on one always loses on the other.
    found = tune_key_tokens(*validation(NARROW, WIDE), a=(0.05, 0.5), top=(0.1,), folds=2)
    assert [(one.win_rate, one.cross_validated) for one in found.best] == [(0.5, 0.0)] * 2
    # Three of a kind and one of the other, each a fold: the three are won, the one is lost.
    found = tune_key_tokens(*validation(NARROW, NARROW, WIDE, NARROW), a=(0.05, 0.5), top=(0.1,), folds=4)
    assert [one.cross_validated for one in found.best] == [0.75, 0.75]


def test_a_tie_is_half_a_win_and_equal_rates_go_to_the_papers_settings() -> None:
    same = ([0.1, 0.8], [0.2, 0.8])
    found = tune_key_tokens(*validation((same, same), (same, same)))
    assert [(one.win_rate, one.a, one.top) for one in found.best] == [(0.5, 0.05, 0.1)] * 2
    assert found.grid.height == 2 * 11 * 11


def test_the_grids_are_those_of_the_paper() -> None:
    assert GRID_A == (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5)
    assert GRID_TOP == (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


def test_settings_are_tuned_on_what_was_annotated() -> None:
    def script(request: Request) -> ScriptedReply:
        good = PASSAGES["p1"] in request.prompt.messages[-1].content
        if isinstance(request, Score):
            good = request.continuation == "good"
        values = NARROW[not good][isinstance(request, Score)]
        return trace([-value for value in values], values)._replace(tokens=("go", "od") if good else ("b", "ad"))

    found = annotate("confidence", RUN, WORLD, Scripted(script), k=2, each=True, relative=False)
    labels = pl.DataFrame({"query": ["q1"] * 2, "passage": ["p1", "p2"], "value": [1.0, 0.0]})
    (best, _) = tune_key_tokens(found.frame, labels, a=(0.05, 0.5), top=(0.1,)).best
    assert (best.a, best.win_rate, best.pairs) == (0.05, 1.0, 1)
    assert math.isnan(best.cross_validated), "one query leaves nothing to choose on"
