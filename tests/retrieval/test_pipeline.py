"""The written form of pipelines: it parses, prints and hashes, and Python's operators make the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragworth import retrieval
from ragworth.core.errors import InputError
from ragworth.retrieval import STEPS
from ragworth.retrieval.pipeline import Pipeline, Step, Top, argument, parse
from ragworth.retrieval.steps.bm25 import Bm25
from ragworth.retrieval.steps.controlled import Oracle
from ragworth.retrieval.steps.reorder import Reversed
from tests.retrieval.samples import SETTINGS, pipelines


@given(pipelines())
def test_what_is_printed_parses_to_the_same(pipeline: Pipeline) -> None:
    again = parse(str(pipeline))
    assert again == pipeline
    assert hash(again) == hash(pipeline)
    assert str(again) == str(pipeline)
    assert again.digest == pipeline.digest


@given(pipelines())
def test_a_list_of_written_steps_is_the_joined_one(pipeline: Pipeline) -> None:
    written = [f"top({step.k})" if isinstance(step, Top) else str(step) for step in pipeline.steps]
    assert Pipeline.of(written) == pipeline
    assert parse(" >> ".join(written)) == pipeline


@given(st.text() | st.text(alphabet="bm25(k1=0.9) >>%,'\"\\reversed10\n", max_size=40))
def test_any_text_is_a_pipeline_or_an_error_of_ours(text: str) -> None:
    try:
        made = parse(text)
    except InputError as error:
        assert "can't parse the pipeline at character" in str(error)
    else:
        assert parse(str(made)) == made


def test_every_kind_is_tried() -> None:
    assert set(SETTINGS) == set(STEPS.names())


def test_operators_make_what_is_written() -> None:
    made = retrieval.bm25(k1=0.9) >> retrieval.reversed() % 10
    assert made == parse("bm25(k1=0.9) >> reversed % 10")
    assert made == (retrieval.bm25(k1=0.9) >> retrieval.reversed()) % 10
    assert made == parse("(bm25(k1=0.9) >> reversed) % 10")
    assert made == retrieval.bm25(k1=0.9) >> "reversed % 10"
    assert made == Pipeline.of([retrieval.bm25(k1=0.9), "reversed % 10"])
    assert made.steps == (Bm25(k1=0.9), Reversed(), Top(10))
    assert str(made) == "bm25(k1=0.9) >> reversed % 10"


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        ("bm25", "bm25"),
        ("bm25()", "bm25"),
        (" bm25 ( ) ", "bm25"),
        ("bm25(k1=1.2, b=0.75)", "bm25"),
        ("bm25(b=0.4,k1=0.9)", "bm25(k1=0.9, b=0.4)"),
        ("bm25(k1=1)", "bm25(k1=1)"),
        ("bm25(k1=1.0)", "bm25(k1=1)"),
        ("bm25(k1=1e-2)", "bm25(k1=0.01)"),
        ("bm25(stemmer='german')", 'bm25(stemmer="german")'),
        ("bm25%10", "bm25 % 10"),
        ("bm25 >> top(10)", "bm25 % 10"),
        ("bm25 % 10 % 5", "bm25 % 5"),
        ("bm25 % 5 % 10", "bm25 % 5"),
        ("bm25 % 20 >> reversed % 5", "bm25 % 20 >> reversed % 5"),
        ("bm25 >> (reversed >> oracle) % 3", "bm25 >> reversed >> oracle % 3"),
        ("oracle(fill=False)", "oracle(fill=false)"),
        ("oracle(fill=false,)", "oracle(fill=false)"),
        ("run('a\t  #b')", 'run("a\\t  #b")'),
        ("run('a\u00a0b\nc')", 'run("a\\xa0b c")'),
        ("run('a \"b\".txt')", 'run("a \\"b\\".txt")'),
        (r'run("C:\\data\u00e9\n")', r'run("C:\\dataé\n")'),
        ("run(path='x')", 'run("x")'),
        ("run(x)", 'run("x")'),
        ("bm25\n  >> reversed\n", "bm25 >> reversed"),
    ],
)
def test_canonical_form(written: str, printed: str) -> None:
    assert str(parse(written)) == printed
    assert str(parse(printed)) == printed


@pytest.mark.parametrize(
    ("text", "at", "words"),
    [
        ("bm52 >> reversed", 1, "did you mean bm25?"),
        ("bm25 >> reverse", 9, "did you mean reversed"),
        ("bm25(k=1)", 6, "did you mean k1?"),
        ("bm25(b=0.4, stemmer=germn)", 1, "german"),
        ("bm25(b=2)", 1, "from 0 to 1"),
        ("bm25(b=inf)", 1, "b is 'inf'"),
        ("bm25(k1=1e999)", 1, "a number 0 or more"),
        ("bm25(0.9)", 6, "one value too many for bm25"),
        ("reversed(1)", 10, "no settings"),
        ("bm25(k1=1, k1=2)", 12, "occurs twice"),
        ("run('a', path='b')", 10, "occurs twice"),
        ("run(x.txt)", 5, "a text in quotes"),
        ("bm25(**x)", 6, "no setting"),
        ("  bm25(k1=None)", 11, "where a value should stand"),
        ("run('é') >> nothing", 13, "nothing"),
        ("bm25 % ten", 8, "a whole number"),
        ("bm25 % 0", 8, "1 or more"),
        ("bm25 % 2.5", 8, "a whole number"),
        ("bm25 % -1", 8, "a whole number"),
        ("bm25 + reversed", 8, "another sign than >> and %"),
        ("bm25 > reversed", 1, "where a step should stand"),
        ("  bm25 # % 3", 8, "no comments"),
        ("bm25 >> bm25", 9, "it retrieves on its own"),
        ("run", 1, "lacks a file"),
    ],
)
def test_errors_point_at_the_place(text: str, at: int, words: str) -> None:
    with pytest.raises(InputError) as caught:
        parse(text)
    assert f"at character {at}:" in str(caught.value)
    assert words in str(caught.value)
    line, arrow = [each for each in caught.value.more if not each.startswith("bm25:")][-2:]
    assert (line + " ")[arrow.index("^")] == (text + " ")[at - 1]


@pytest.mark.parametrize(
    "text",
    [
        *("", "bm25 >>", "bm25 %", "bm25(k1=)", "bm25(", "bm25(k1=1 b=2)", "bm25(k1=1, 2)", "(bm25", "bm25)"),
        *("(" * 600 + "bm25", r"run('\q')", r"run('\U00110000')", "run('a)", "\0", "run('\ud800')", "bm25 reversed"),
    ],
)
def test_what_is_no_expression_is_an_error_with_an_example(text: str) -> None:
    with pytest.raises(InputError, match=r"can't parse the pipeline at character \d+: [^$]*a form like bm25\(k1=0.9\)"):
        parse(text)


def test_a_number_of_many_digits_is_a_number() -> None:
    assert parse("bm25(k1=99999999999999999999999)").steps[0] == Bm25(k1=1e23)


def test_control_characters_are_not_shown() -> None:
    with pytest.raises(InputError) as caught:
        parse("bm25 >> \x1b[31mreversed")
    assert "\x1b" not in str(caught.value)


def test_an_unfinished_pipeline_is_a_part() -> None:
    part = parse("reversed % 10")
    assert str(Bm25() >> part) == "bm25 >> reversed % 10"
    with pytest.raises(InputError, match="reversed can't be first"):
        part.complete()
    assert (Oracle() % 3).complete() == parse("oracle % 3")


@pytest.mark.parametrize("wrong", [3, None, [], [3], {"bm25": 1}])
def test_what_is_no_pipeline(wrong: object) -> None:
    with pytest.raises(InputError):
        Pipeline.of(wrong)


def test_settings_are_checked_in_python_too() -> None:
    with pytest.raises(InputError, match="b is 2; it may be from 0 to 1"):
        retrieval.bm25(b=2)
    with pytest.raises(InputError, match="k is 0"):
        Bm25() % 0


def test_what_goes_by_place_goes_by_name_behind_a_gap() -> None:
    @dataclass(frozen=True)
    class Two(Step):
        a: int = argument(1, "one")
        b: int = argument(2, "two")
        kind: ClassVar[str] = "two"

    assert [str(Two(*given)) for given in ((), (5,), (5, 6), (1, 6))] == ["two", "two(5)", "two(5, 6)", "two(b=6)"]


def test_names_of_steps_are_attributes_and_hide_no_module() -> None:
    for name in STEPS.names():
        assert getattr(retrieval, name) is STEPS.get(name)
        assert STEPS.get(name).kind == name
    with pytest.raises(AttributeError):
        _ = retrieval.nonsense


def test_the_number_of_steps_is_bounded() -> None:
    assert len(Pipeline.of("bm25" + " >> reversed" * 99).steps) == 100
    for written in ("bm25" + " >> reversed" * 100, "bm25" + " >> reversed" * 20_000, ["bm25", *["reversed"] * 20_000]):
        with pytest.raises(InputError, match="more than 100 steps"):
            Pipeline.of(written)
