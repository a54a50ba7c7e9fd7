"""Written forms of metrics: what parses to what, what is refused and how that is said."""

from __future__ import annotations

import re

import pytest

from ragworth.core.errors import InputError, MetricError
from ragworth.core.registry import Registry
from ragworth.metrics import METRICS, parsing
from ragworth.metrics.declaration import Parameter, ParameterValue
from ragworth.metrics.parsing import parse, parse_all


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("nDCG@10", "nDCG@10"),
        ("  nDCG @ 10 ", "nDCG@10"),
        ("ndcg@10", "nDCG@10"),
        ("NDCG", "nDCG"),
        ("f_E@3", "F_e@3"),
        ("P@007", "P@7"),
        ("P()@5", "P@5"),
        # Other names.
        ("MAP", "AP"),
        ("map@100", "AP@100"),
        ("MRR@10", "RR@10"),
        ("recall@5", "R@5"),
        ("Precision@5", "P@5"),
        ("HITS@1", "Success@1"),
        ("hit@1", "Success@1"),
        ("coverage", "Cov"),
        ("Density@3", "Den@3"),
        ("alpha-nDCG@10", "alpha_nDCG@10"),
        ("α-nDCG@10", "alpha_nDCG@10"),
        ("α_nDCG", "alpha_nDCG"),
        # trec_eval's.
        ("ndcg", "nDCG"),
        ("ndcg_cut_10", "nDCG@10"),
        ("map_cut_5", "AP@5"),
        ("P_20", "P@20"),
        ("recall_1000", "R@1000"),
        ("success_1", "Success@1"),
        ("recip_rank", "RR"),
        ("Rprec", "Rprec"),
        ("bpref", "Bpref"),
        # Parameters: in the order of declaration, without those that are as they come.
        ("P(rel=1)", "P"),
        ("P(rel=2.0)", "P(rel=2)"),
        ("P(rel=-1)", "P(rel=-1)"),
        ("P( rel = 1e1 )@5", "P(rel=10)@5"),
        ("AP(ideal=retrieved, rel=2)@5", "AP(rel=2, ideal=retrieved)@5"),
        ("nDCG(gain='exponential')@10", "nDCG(gain=exponential)@10"),
        ('nDCG(gain="exponential")@10', "nDCG(gain=exponential)@10"),
        ("UDCG(gamma=1/3)@5", "UDCG@5"),
        ("UDCG(gamma=1/4)@5", "UDCG(gamma=0.25)@5"),
        ("UDCG(gamma=1/7)", f"UDCG(gamma={1 / 7!r})"),
        ("UDCG(raw=TRUE)", "UDCG(raw=true)"),
        ("UDCG(raw=false)", "UDCG"),
    ],
)
def test_forms(text: str, written: str) -> None:
    assert str(parse(text)) == written
    assert parse(text) == parse(written)


def test_upper_case_f1_is_not_f() -> None:
    assert {parse(name).name for name in ("F", "f", "F1", "f1")} == {"F", "F1"}


def test_a_metric_knows_all_its_parameters() -> None:
    metric = parse("UDCG(gamma=0.5)@5")
    assert metric.values == {"gamma": 0.5, "raw": False, "rel": 1.0}
    assert metric.parameters == (("gamma", 0.5),)
    assert metric.cutoff == 5


def test_what_a_metric_needs_may_depend_on_its_parameters() -> None:
    assert parse("F_e").needs == {"relevance"}
    assert parse("F_e(estimate=pool)").needs == {"relevance", "runs"}
    assert parse("Den").needs == {"ratings", "tokens"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nDGC@10", "unknown metric 'nDGC'"),
        ("", "cannot read '' as a metric"),
        ("@10", "cannot read '@10' as a metric"),
        ("P@", "cannot read 'P@' as a metric"),
        ("P(rel=2", "cannot read 'P(rel=2' as a metric"),
        ("P@5(rel=2)", "the cutoff '5(rel=2)' in 'P@5(rel=2)' is not a whole number"),
        ("P@0", "P@0: the cutoff must be 1 or more"),
        ("P@ten", "the cutoff 'ten' in 'P@ten' is not a whole number"),
        ("P@-1", "the cutoff '-1' in 'P@-1' is not a whole number"),
        ("P@1.5", "the cutoff '1.5' in 'P@1.5' is not a whole number"),
        ("P@١", "the cutoff '١' in 'P@١' is not a whole number"),
        ("P@12345678901", "the cutoff '12345678901' in 'P@12345678901' is not a whole number"),
        ("Rprec@5", "Rprec@5: takes no cutoff"),
        ("bpref@5", "Bpref@5: takes no cutoff"),
        ("P(gamma=1)", "P has no parameter 'gamma'"),
        ("Judged(rel=1)", "Judged has no parameter 'rel'"),
        ("P(2)", "cannot read '2' in 'P(2)'"),
        ("P(rel=)", "cannot read 'rel=' in 'P(rel=)'"),
        ("P(rel=1,)", "cannot read '' in 'P(rel=1,)'"),
        ("P(rel=1, rel=2)", "a parameter occurs twice in 'P(rel=1, rel=2)'"),
        ("P(rel=1, rel=1)", "a parameter occurs twice in 'P(rel=1, rel=1)'"),
        ("P(rel=high)", "P: rel=high is invalid"),
        ("P(rel=nan)", "P: rel=nan is invalid"),
        ("P(rel=inf)", "P: rel=inf is invalid"),
        ("P(rel=1/0)", "P: rel=1/0 is invalid"),
        ("UDCG(gamma=1.5)", "UDCG: gamma=1.5 is invalid"),
        ("UDCG(gamma=-0.1)", "UDCG: gamma=-0.1 is invalid"),
        ("UDCG(raw=1)", "UDCG: raw=1 is invalid"),
        ("nDCG(gain=cubic)", "nDCG: gain=cubic is invalid"),
        ("nDCG(gain=Linear)", "nDCG: gain=Linear is invalid"),
        ("F_e(depth=1)", "F_e: depth=1 is invalid"),
    ],
)
def test_refused(text: str, said: str) -> None:
    with pytest.raises(MetricError) as caught:
        parse(text)
    assert caught.value.found == said


@pytest.mark.parametrize(
    ("text", "near"), [("nDGC@10", "nDCG"), ("Recal", "Rprec"), ("UDGC", "UDCG"), ("alphandcg", "alpha_nDCG")]
)
def test_did_you_mean(text: str, near: str) -> None:
    with pytest.raises(MetricError) as caught:
        parse(text)
    assert re.match(rf"did you mean .*\b{near}\b.*\?", caught.value.remedy)
    assert all(name in caught.value.expected for name in METRICS.names())


@pytest.mark.parametrize(("installed", "advised"), [(None, True), (object(), False)])
def test_measures_of_ir_measures_need_its_package(
    installed: object, advised: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parsing, "find_spec", lambda name: installed)
    with pytest.raises(MetricError) as caught:
        parse("ERR@10")
    assert caught.value.remedy.endswith('pip install "ragworth[ir-measures]"') == advised


def test_nothing_is_suggested_where_nothing_is_near() -> None:
    with pytest.raises(MetricError) as caught:
        parse("zzzzzzzz")
    assert caught.value.remedy == ""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("UDCG(gamma=2)", "a number from 0 to 1, such as UDCG(gamma=0.3333333333333333)"),
        ("UDCG(raw=maybe)", "true or false, such as UDCG(raw=false)"),
        ("nDCG(gain=cubic)", "linear or exponential, such as nDCG(gain=linear)"),
        ("Den(w=-1)", "a number from 0, such as Den(w=0.5)"),
        ("P(rel=x)", "a number, such as P(rel=1)"),
        ("P(gamma=1)", "rel"),
        ("Judged(gamma=1)", "no parameters"),
    ],
)
def test_what_was_expected_is_said(text: str, expected: str) -> None:
    with pytest.raises(MetricError) as caught:
        parse(text)
    assert caught.value.expected == expected


@pytest.mark.parametrize("value", ["high", True, 2.0, float("nan")])
def test_bound_values_are_checked_as_written_ones_are(value: ParameterValue) -> None:
    with pytest.raises(MetricError, match="gamma"):
        METRICS.get("UDCG").bind(gamma=value)


def test_bound_and_parsed_metrics_are_the_same() -> None:
    bound = METRICS.get("UDCG").bind(5, rel=2, gamma=0.5, raw=False)
    assert bound == parse("UDCG(gamma=0.5, rel=2)@5")
    assert (bound.name, bound.parameters, bound.cutoff) == ("UDCG", (("gamma", 0.5), ("rel", 2.0)), 5)
    assert len({bound, parse(str(bound))}) == 1


@pytest.mark.parametrize("cutoff", [0, -3])
def test_bound_cutoffs_are_checked(cutoff: int) -> None:
    with pytest.raises(MetricError, match="the cutoff must be 1 or more"):
        METRICS.get("P").bind(cutoff)


def test_a_metric_asked_for_twice_is_scored_once() -> None:
    assert [str(m) for m in parse_all(["P@5", "AP", "P_5", parse("P(rel=1)@5"), "map"])] == ["P@5", "AP"]


def test_all_that_cannot_be_read_is_said_at_once() -> None:
    with pytest.raises(MetricError) as caught:
        parse_all(["P@5", "nDGC", "P@0"])
    assert caught.value.found == "2 metrics can't be parsed"
    assert [text.splitlines()[0] for text in caught.value.more] == [
        "unknown metric 'nDGC'",
        "P@0: the cutoff must be 1 or more",
    ]


def test_no_metric_is_an_error() -> None:
    with pytest.raises(MetricError, match="no metrics given"):
        parse_all([])


@pytest.mark.parametrize("name", METRICS.names())
def test_declarations_are_complete(name: str) -> None:
    declaration = METRICS.get(name)
    assert declaration.name == name
    assert all((declaration.title, declaration.formula, declaration.range, declaration.paper, declaration.doc))
    for parameter in declaration.parameters:
        assert parameter.doc
        assert parameter.check(parameter.default) == parameter.default


def test_names_differ_by_more_than_case() -> None:
    folded = [name.casefold() for name in METRICS.names()]
    assert len(set(folded)) == len(folded)


def test_a_name_that_is_taken_raises() -> None:
    registry: Registry[Parameter] = Registry("metric", "ragworth.tests.nothing", {"P": "somewhere:p"})
    with pytest.raises(InputError, match=r"the metric name 'P' is taken \(by somewhere:p\)"):
        registry.add("P", "elsewhere:p")
    registry.add("mine", Parameter("rel", 1.0, ""))
    with pytest.raises(InputError, match="'mine' is taken"):
        registry.add("mine", "elsewhere:p")
    assert registry.names() == ["P", "mine"]
    assert registry.get("mine").name == "rel"
