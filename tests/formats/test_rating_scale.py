"""Files of ratings and labels are refused, with their line, where one is off the scale."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragworth.core.errors import FormatError
from ragworth.formats import read_judgments, read_ratings

FILES = {
    "ratings": "q s1 d 5\n\nq s2 d {}\n",
    "ratings.csv": "query,passage,subquestion,value\nq,d,s1,5\nq,d,s2,{}\n",
    "ratings.jsonl": '{{"query": "q", "passage": "d", "subquestion": "s1", "value": 5}}\n\n'
    '{{"query": "q", "passage": "d", "subquestion": "s2", "value": {}}}\n',
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("value", ["6", "-1", "3.5", "1e3"])
def test_off_the_scale(name: str, value: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(FILES[name].format(value))
    with pytest.raises(FormatError, match=f"the rating is {float(value):,g}") as error:
        read_ratings(path)
    assert (error.value.file, error.value.line) == (str(path), 3)
    assert error.value.expected == "a whole number from 0 to 5"


def test_a_missing_rating_is_none(tmp_path: Path) -> None:
    path = tmp_path / "ratings.csv"
    path.write_text("query,passage,subquestion,value,status\nq,d,s,,unparsable\n")
    assert read_ratings(path).frame["value"].to_list() == [None]


LABELS = {
    "qrels": "q 0 a {}\n\nq 0 b {}\n",
    "qrels.csv": "query,passage,value\nq,a,{}\n\nq,b,{}\n",
    "qrels.jsonl": '{{"query": "q", "passage": "a", "value": {}}}\n\n{{"query": "q", "passage": "b", "value": {}}}\n',
    "beir/qrels/test.tsv": "query-id\tcorpus-id\tscore\nq\ta\t{}\nq\tb\t{}\n",
    "qrels.json": '{{"q": {{"a": {}, "b": {}}}}}',
}


@pytest.mark.parametrize("name", LABELS)
def test_labels_beyond_all_scales(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    spec = f"beir:{path}" if name.endswith("tsv") else f"pytrec_eval:{path}" if name.endswith("json") else path
    line = {"qrels.csv": 4, "qrels.json": None}.get(name, 3)
    path.write_text(LABELS[name].format(1, 1_000_000))
    with pytest.raises(FormatError, match="the label is 1,000,000") as error:
        read_judgments(spec)
    assert (error.value.file, error.value.line) == (str(path), line)
    for low, high in ((-5, 4), (0, 100)):
        path.write_text(LABELS[name].format(low, high))
        assert read_judgments(spec).notes == ()
