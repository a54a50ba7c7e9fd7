"""Re-ranking by asking a model: a perfect judge, counts of calls, failures, plans and the store."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragworth.calls.store import Store
from ragworth.errors import InputError, ModelError, PromptError
from ragworth.llm.contract import Choose, Failure, Generate, Prompt, Request, Score
from ragworth.llm.scripted import Reply, Scripted
from ragworth.retrieval import Pipeline, Setting, retrieve
from ragworth.retrieval.contract import listing
from ragworth.retrieval.rerankers.asked import Asked, beginning
from ragworth.retrieval.rerankers.asking import Asker
from ragworth.retrieval.steps.listwise import MISSING, STRANGE, TWICE, Listwise, permutation, windows
from ragworth.retrieval.steps.pointwise import Pointwise
from ragworth.retrieval.steps.setwise import Setwise
from ragworth.retrieval.steps.useful import Useful
from ragworth.tables import Contexts
from tests.retrieval.samples import passages, world


def grades(request: Request) -> list[int]:
    """The grades of the passages in a prompt, in their order."""
    return [int(each) for each in re.findall(r"grade (\d+)", request.prompt.messages[-1].content)]


def perfect(request: Request) -> Reply:
    """A judge that reads the grade (0 to 9) in the text, and sees no difference between equal ones."""
    found = grades(request) or [5]
    if isinstance(request, Score):
        return float(found[0] - 10)
    if isinstance(request, Generate):
        order = sorted(range(len(found)), key=lambda place: -found[place])
        return " > ".join(f"[{place + 1}]" for place in order)
    if request.labels[0] == "YES":
        return {"YES": found[0] / 10, "NO": 1 - found[0] / 10}
    if request.labels[0] == "NO-RESPONSE":
        return {"NO-RESPONSE": 1 - found[0] / 10}
    best = [label for label, grade in zip(request.labels, found, strict=True) if grade == max(found)]
    return dict.fromkeys(best, 0.9 / len(best))


def graded(values: list[int], model: Any = None, **more: Any) -> tuple[Setting, Contexts]:
    """Passages with these grades, and a run that has them in their order."""
    texts = {f"p{number:03}": f"It has grade {value}, passage {number}." for number, value in enumerate(values)}
    setting = world(texts, {"q": "Which is best?"}, None, model=model or Scripted(perfect), **more)
    return setting, listing([("q", list(texts))])


def reranked(step: Asked, values: list[int], model: Any = None, **more: Any) -> list[int]:
    """Places of the passages in their new order."""
    setting, before = graded(values, model, **more)
    made = step.apply(before, setting)
    return [int(each[1:]) for each in made.frame.sort("rank")["passage"]]


def ideal(values: list[int]) -> list[int]:
    return sorted(range(len(values)), key=lambda place: -values[place])


METHODS: list[Asked] = [
    Pointwise(),
    Pointwise(by="likelihood"),
    Listwise(),
    Setwise(k=30),
    Setwise(k=30, compared=3),
    Setwise(k=30, compared=7),
    Setwise(k=30, sort="bubble"),
    Setwise(k=30, sort="bubble", compared=2),
    Useful(),
    Useful(judge="scripted"),
]


@pytest.fixture(autouse=True)
def named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A judge that is named is the same scripted model."""
    from ragworth.judging import models

    real = models.opened
    monkeypatch.setattr(
        "ragworth.retrieval.rerankers.asking.opened",
        lambda model: Scripted(perfect, name="judge") if model == "scripted" else real(model),
    )


@pytest.mark.parametrize("step", METHODS, ids=str)
@settings(max_examples=25, deadline=None)
@given(values=st.lists(st.integers(1, 9), max_size=20))
def test_a_perfect_judge_gives_the_ideal_order(step: Asked, values: list[int]) -> None:
    """Equal grades stay in the order before; utility of a relevant passage grows with its grade, of others it sinks."""
    if isinstance(step, Useful) and step.judge:
        values = [max(5, value) for value in values]
    model = Scripted(perfect)
    assert reranked(step, values, model) == ideal(values)
    assert model.calls <= step.most(len(values))


@pytest.mark.parametrize("step", METHODS, ids=str)
def test_only_the_first_are_reranked(step: Asked) -> None:
    from dataclasses import replace

    values = [5, 6, 7, 8, 9, 9]
    assert reranked(replace(step, depth=3), values) == [2, 1, 0, 3, 4, 5]
    assert reranked(replace(step, depth=50), values) == ideal(values)


def test_scores_are_those_of_the_judge() -> None:
    setting, before = graded([3, 7])
    made = Pointwise(depth=1).apply(before, setting)
    assert made.frame["score"].to_list() == [0.3, None]
    assert Useful().apply(before, setting).frame["score"].to_list() == pytest.approx([0.7, 0.3])
    judged = Useful(judge="scripted").apply(before, setting).frame
    assert judged["score"].to_list() == pytest.approx([0.7 * 0.4, 0.3 * -0.4])
    assert Listwise().apply(before, setting).frame["score"].to_list() == [None, None]


def test_a_model_that_only_writes() -> None:
    def writes(request: Request) -> Reply:
        found = grades(request)
        if "YES" in request.prompt.messages[0].content:
            return "YES" if found[0] > 4 else "No."
        return "ABCDEFGH"[found.index(max(found))]

    model = Scripted(writes, abilities=("generate",))
    assert reranked(Pointwise(), [1, 6, 2, 9], model) == [1, 3, 0, 2]
    assert reranked(Setwise(k=2), [1, 6, 2, 9, 3], model) == [3, 1, 0, 2, 4]
    for step in (Pointwise(by="likelihood"), Useful()):
        with pytest.raises(InputError, match=f"s: .*{step.kind if step.kind != 'useful' else 'abstention'}"):
            retrieve({"s": Pipeline.of("bm25") >> step}, graded([1], model)[0])


# Calls, as the papers count them.


@pytest.mark.parametrize("n", [0, 1, 2, 19, 20, 21, 30, 31, 100])
@pytest.mark.parametrize(("window", "step"), [(20, 10), (4, 2), (5, 4), (3, 1)])
def test_windows_of_lists(n: int, window: int, step: int) -> None:
    """One for a list that fits; else ⌈(n − w) / s⌉ more: 9 for a hundred passages with 20 and 10, as in the paper."""
    found = list(windows(n, window, step))
    assert len(found) == (0 if n < 2 else 1 + max(0, math.ceil((n - window) / step)))
    assert {place for start, end in found for place in range(start, end)} == (set(range(n)) if n > 1 else set())
    if (n, window, step) == (100, 20, 10):
        assert len(found) == 9
    model = Scripted(perfect)
    values = [(7 * place) % 10 for place in range(n)]
    order = reranked(Listwise(window=window, step=step), values, model)
    assert model.calls == len(found)
    # What the window carries to the front is in order.
    assert order[: max(0, window - step)] == ideal(values)[: max(0, window - step)]
    assert sorted(order) == list(range(n))


@pytest.mark.parametrize("compared", [3, 4, 10])
@pytest.mark.parametrize("k", [1, 10, 40])
def test_calls_of_setwise(compared: int, k: int) -> None:
    n = 40
    values = [(7 * place) % 10 for place in range(n)]
    counts = {}
    for sort in ("heap", "bubble"):
        model = Scripted(perfect)
        step = Setwise(k=k, compared=compared, sort=sort)
        assert reranked(step, values, model)[:k] == ideal(values)[:k]
        counts[sort] = model.calls
        assert model.calls <= step.most(n)
    # Distinct comparisons: a pass of bubbling takes ⌈(m − 1) / (c − 1)⌉ for the m that are left.
    assert Setwise(k=k, compared=compared, sort="bubble").most(n) == sum(
        math.ceil((n - front - 1) / (compared - 1)) for front in range(k)
    )
    # Making the heap asks about each of its ⌈(n − 1) / (c − 1)⌉ inner places at least once.
    assert counts["heap"] >= math.ceil((n - 1) / (compared - 1))
    height = math.ceil(math.log(n) / math.log(compared - 1)) if compared > 2 else n
    assert counts["heap"] <= 2 * math.ceil((n - 1) / (compared - 1)) + k * height
    if k == 10:
        assert counts["heap"] < Setwise(k=k, compared=compared, sort="bubble").most(n)


def test_setwise_behind_k_keeps_the_order_before() -> None:
    for sort in ("heap", "bubble"):
        assert reranked(Setwise(k=2, compared=3, sort=sort), [1, 8, 2, 3, 9, 1]) == [4, 1, 0, 2, 3, 5]


# What a model writes.


@pytest.mark.parametrize(
    ("text", "places", "remarks"),
    [
        ("[2] > [1] > [3]", [1, 0, 2], {}),
        ("The order is [3] > [1] > [2].", [2, 0, 1], {}),
        ("2 > 3 > 1", [1, 2, 0], {}),
        ("2, 3, 1.", [1, 2, 0], {}),
        ("[2]", [1, 0, 2], {MISSING: 2}),
        ("[2] > [2] > [1] > [3] > [2]", [1, 0, 2], {TWICE: 2}),
        ("[4] > [0] > [3] > [1] > [2]", [2, 0, 1], {STRANGE: 2}),
        ("[3] > [3] > [7]", [2, 0, 1], {TWICE: 1, STRANGE: 1, MISSING: 2}),
    ],
)
def test_permutations(text: str, places: list[int], remarks: dict[str, int]) -> None:
    found = permutation(text, 3)
    assert found.places == places
    assert found.remarks == remarks


@pytest.mark.parametrize("text", ["", "the second one", "In 2023 there were 3", "[9] > [10]", "-1", "[²]", "[two]"])
def test_no_permutation(text: str) -> None:
    from ragworth.calls.steps import NoValue

    with pytest.raises(NoValue):
        permutation(text, 3)


@given(st.text(alphabet="[]>, 0123456789ab.", max_size=60), st.integers(1, 8))
def test_any_text_is_a_permutation_or_none(text: str, n: int) -> None:
    from ragworth.calls.steps import NoValue

    try:
        found = permutation(text, n)
    except NoValue:
        return
    assert sorted(found.places) == list(range(n))


def test_what_was_mended_is_noted() -> None:
    setting, before = graded([1, 2, 3], Scripted(lambda request: "[3] > [3] > [8]"))
    made = Listwise().apply(before, setting)
    assert made.frame["passage"].to_list() == ["p002", "p000", "p001"]
    assert [note.partition(": ")[2] for note in made.notes] == [f"{MISSING} (2)", f"{STRANGE} (1)", f"{TWICE} (1)"]


# What fails.


def failing(which: Callable[[Request], bool]) -> Scripted:
    return Scripted(lambda request: Failure("timed-out") if which(request) else perfect(request))


@pytest.mark.parametrize("step", [Pointwise(), Pointwise(by="likelihood"), Useful()], ids=str)
def test_what_was_not_judged_stands_behind(step: Asked) -> None:
    setting, before = graded([1, 2, 3, 9, 4], failing(lambda request: grades(request)[0] in (2, 9)))
    made = step.apply(before, setting)
    assert made.frame["passage"].to_list() == ["p004", "p002", "p000", "p001", "p003"]
    assert any("2 of 5 passages could not be judged and stand behind" in note for note in made.notes)
    assert any("timed-out 2" in note for note in made.notes)


def test_a_window_that_failed_keeps_its_order() -> None:
    values = [1, 2, 3, 4]
    model = failing(lambda request: grades(request) == [3, 4])
    setting, before = graded(values, model)
    made = Listwise(window=2, step=1).apply(before, setting)
    # 3, 4 fails; then 2, 3 and 1, 3 are turned round.
    assert made.frame["passage"].to_list() == ["p002", "p000", "p001", "p003"]
    assert any("1 of 3 windows could not be judged and kept the order before" in note for note in made.notes)


def test_a_choice_that_failed_goes_to_the_first() -> None:
    setting, before = graded([1, 2, 3], failing(lambda request: len(grades(request)) == 3))
    made = Setwise(k=3, compared=3).apply(before, setting)
    assert made.frame["passage"].to_list() == ["p000", "p002", "p001"]
    assert any("1 of 2 choices could not be judged" in note for note in made.notes)


@pytest.mark.parametrize("step", METHODS, ids=str)
def test_when_all_calls_fail_it_is_an_error(step: Asked) -> None:
    setting, before = graded([1, 2, 3], failing(lambda request: True))
    with pytest.raises(ModelError, match=r"none of .* could be judged: timed-out"):
        step.apply(before, setting)
    assert step.apply(listing([]), setting).frame.height == 0


def test_an_order_that_nobody_can_read_is_an_error() -> None:
    setting, before = graded([1, 2, 3], Scripted(lambda request: "I like them all."))
    with pytest.raises(ModelError, match="none of 1 window could be judged: unparsable 1"):
        Listwise().apply(before, setting)


@pytest.mark.parametrize("step", METHODS, ids=str)
def test_passages_and_queries_without_texts(step: Asked) -> None:
    texts = {"a": "grade 5", "b": "  ", "c": "grade 7"}
    setting = world(texts, {"q": "Which?", "empty": " "}, None, model=Scripted(perfect))
    made = step.apply(listing([("q", ["a", "b", "gone", "c"]), ("empty", ["a", "c"])]), setting)
    assert made.frame.filter(query="q")["passage"].to_list() == ["c", "a", "b", "gone"]
    assert made.frame.filter(query="empty")["passage"].to_list() == ["a", "c"]
    (note,) = made.notes
    assert "4 passages without a text to judge by stand behind" in note
    assert all(why in note for why in ("no-query-text 2", "empty-passage 1", "no-passage-text 1"))
    with pytest.raises(InputError, match="no texts of the passages"):
        step.apply(listing([("q", ["x", "y"])]), setting)


def test_a_passage_that_is_cut_is_noted() -> None:
    class Cutting(Scripted):
        def choose(self, requests: Any) -> Any:
            found: list[Any] = list(super().choose(requests))
            return [one._replace(usage=one.usage._replace(cut=9)) for one in found]

    for step in (Pointwise(), Useful()):
        setting, before = graded([1, 2], Cutting(perfect))
        (note,) = step.apply(before, setting).notes
        assert note.endswith(
            "prompts that were too long for the model, and show only the beginning of their passages (2)"
        )


def test_a_model_that_never_declines_is_noted() -> None:
    setting, before = graded([1, 2], Scripted(lambda request: {"NO-RESPONSE": grades(request)[0] / 1000}))
    (note,) = Useful().apply(before, setting).notes
    assert "practically never declines" in note


# Pipelines, plans and the store.


def test_written_forms() -> None:
    for text in (
        "bm25 % 20 >> listwise(window=4, step=2) % 5",
        'bm25 >> pointwise(model="hf:a/b", by="likelihood")',
        'bm25 >> setwise(k=3, sort="bubble")',
        'bm25 >> useful(depth=5, judge="embedded:base")',
    ):
        assert str(Pipeline.of(text)) == text
    for wrong in ("listwise(window=3, step=3)", "setwise(compared=2)", "pointwise(by=chance)", "listwise(window=1)"):
        with pytest.raises(InputError):
            Pipeline.of(f"bm25 >> {wrong}")


def test_nobody_to_ask() -> None:
    from dataclasses import replace

    with pytest.raises(InputError, match="s: pointwise asks a model, and there is none to ask"):
        retrieve({"s": "bm25 >> pointwise"}, replace(world(), asking=None))


def test_what_systems_share_is_asked_once_and_kept(tmp_path: Path) -> None:
    model = Scripted(perfect)
    texts = {f"p{number}": f"mill grade {number}" for number in range(6)}
    setting = world(texts, {"q": "mill"}, None, model=model, store=tmp_path / "calls.sqlite")
    systems = {"a": "bm25 >> pointwise", "b": "bm25 >> pointwise % 2", "c": "bm25 % 3 >> pointwise"}
    made = retrieve(systems, setting)
    assert model.calls == 6
    assert passages(made, "b")["q"] == ["p5", "p4"]
    assert retrieve(systems, setting) == made
    assert model.calls == 6


def test_useful_asks_what_the_judgment_asks(tmp_path: Path) -> None:
    import ragworth

    model, store = Scripted(perfect), tmp_path / "calls.sqlite"
    setting, before = graded([1, 2, 3], model, store=store)
    ragworth.annotate("abstention", before, setting.collection, model, store=store)
    asked = model.calls
    Useful().apply(before, setting)
    assert model.calls == asked


def planned(values: list[int], step: Asked, store: Path, model: Scripted) -> tuple[list[str], list[str]]:
    setting, before = graded(values, model)
    from dataclasses import replace

    asker = Asker(model, store, plan=True)
    asker.turn("mine")
    made = step.apply(before, replace(setting, asking=asker))
    assert all(told.system == "mine" and told.step == str(step) for told in asker.told)
    return made.frame["passage"].to_list(), [told.words for told in asker.told]


@pytest.mark.parametrize("step", METHODS, ids=str)
def test_a_plan_asks_nothing_and_takes_what_there_is(step: Asked, tmp_path: Path) -> None:
    model, store, values = Scripted(perfect), tmp_path / "calls.sqlite", [5, 6, 7, 8, 9, 9, 8, 7, 6]
    order, words = planned(values, step, store, model)
    assert order == [f"p{place:03}" for place in range(9)]
    assert model.calls == 0
    assert not store.exists()
    assert "0 answered already" in words[0]
    assert reranked(step, values, model, store=store) == ideal(values)
    asked = model.calls
    order, words = planned(values, step, store, model)
    assert order == [f"p{place:03}" for place in ideal(values)]
    assert "0 calls to make" in words[0]
    assert "at most about" in words[0]
    assert model.calls == asked


def test_a_plan_of_several_rounds_says_how_many_calls_there_may_be(tmp_path: Path) -> None:
    model = Scripted(perfect)
    _, (words,) = planned([1] * 100, Listwise(), tmp_path / "calls.sqlite", model)
    assert words.startswith("1 request, 1 distinct, 0 answered already; 1 call to make")
    assert words.endswith("with those that depend on the answers, 9 requests at most")


def test_half_of_it_in_the_store(tmp_path: Path) -> None:
    """Killed after some calls: what was asked is not asked again, and comes to the same."""
    store, values = tmp_path / "calls.sqlite", [1, 4, 2, 9, 3, 3, 7]
    for step in (Pointwise(), Setwise(k=7), Listwise(window=3, step=1)):
        count = 0

        def dying(request: Request) -> Reply:
            nonlocal count
            count += 1
            if count > 3:
                raise KeyboardInterrupt
            return perfect(request)

        with pytest.raises(BaseException):  # noqa: B017 (an interrupt, in whatever way it comes)
            reranked(step, values, Scripted(dying, batch=1), store=store)
        with Store(store) as kept:
            safe = len(list(kept.entries()))
        model = Scripted(perfect)
        made = reranked(step, values, model, store=store)
        fresh = Scripted(perfect)
        assert made == reranked(step, values, fresh)
        assert fresh.calls - model.calls == 3
        with Store(store) as kept:
            assert len(list(kept.entries())) == safe + model.calls


def test_sources_know_model_and_prompts(tmp_path: Path) -> None:
    setting, _ = graded([1])
    other, _ = graded([1], Scripted(perfect, name="other"))
    for step in METHODS:
        assert step.sources(setting) == step.sources(setting)
        assert step.sources(setting) != step.sources(other)
    (tmp_path / "rerank-yes.txt").write_text("[user]\n{{passage*}}? {{query}}")
    own, _ = graded([1], prompts=tmp_path)
    assert Pointwise().sources(own) != Pointwise().sources(setting)
    assert Listwise().sources(own) == Listwise().sources(setting)
    (tmp_path / "rerank-yes.txt").write_text("[user]\n{{passage*}}? {{answer}}")
    with pytest.raises(PromptError, match="no slot for query; nothing is known to fill answer"):
        Pointwise().sources(own)


def test_the_judge_sees_no_accepted_answer() -> None:
    from dataclasses import replace

    import polars as pl

    seen: list[Prompt] = []

    def noting(request: Request) -> Reply:
        seen.append(request.prompt)
        assert isinstance(request, Choose)
        return perfect(request)

    setting, before = graded([1, 2], Scripted(noting))
    known = pl.DataFrame({"query": ["q"], "text": ["the secret"]})
    Useful(judge="").apply(before, replace(setting, collection=replace(setting.collection, answers=known)))
    assert seen
    assert not any("secret" in message.content for prompt in seen for message in prompt.messages)


def test_only_the_beginning_is_shown() -> None:
    assert beginning("one two  three four", 3) == "one two  three"
    assert beginning("one two", 0) == "one two"
    assert beginning("", 3) == ""
    assert beginning(" one", 1) == " one"
    assert beginning("風車" * 500, 3) == "風車" * 500
