"""A sample for people, and what they found."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

from ragworth.build.card import CollectionCard
from ragworth.build.drafts import Draft, Drafts
from ragworth.build.review import add_review, draw_sample, read_review, write_sample
from ragworth.cli import main
from ragworth.errors import FormatError


@pytest.fixture
def collection(tmp_path: Path) -> Path:
    folder = tmp_path / "collection"
    folder.mkdir()
    fields = {"answerable": True, "passages": ["p"], "style": "question"}
    drafts = Drafts(
        Draft(f"q{n}", "question", "", {"question": f"=Who {n}?", "answers": ["Ann"], "type": "fact"} | fields)
        for n in range(80)
    )
    drafts.drop("q0", "copied")
    drafts.write(folder / "drafts.jsonl")
    (folder / "passages.jsonl").write_text('{"_id": "p", "text": "Ann did."}\n')
    CollectionCard("Mine", "build questions", {"documents": 1}).write(folder)
    return folder


def test_the_sample_is_seeded_and_of_kept_questions(collection: Path) -> None:
    sample = draw_sample(collection, 60, seed=3)
    assert sample.height == 60 and "q0" not in sample["id"].to_list()
    assert sample.equals(draw_sample(collection, 60, seed=3))
    assert not sample.equals(draw_sample(collection, 60, seed=4))
    assert "Ann did." in sample["passages"][0]


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_sixty_reviewed_and_fifty_two_sound(collection: Path, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"review.{ending}"
    words = ["yes"] * 52 + ["No"] * 8 + [""] * 3
    sample = draw_sample(collection, 63).with_columns(pl.Series("sound", words))
    write_sample(sample, path)
    review = read_review(path, collection)
    # Wilson: (52 + z²/2) / (60 + z²) ± z/(60 + z²) · √(52 · 8/60 + z²/4), z = 1.96: 0.845 ± 0.087
    assert review.interval == pytest.approx((0.758, 0.931), abs=0.001)
    assert review.sentence == "of 60 reviewed, 52 are sound [.76, .93] (3 rows not filled in)"
    add_review(collection, review, path.name)
    assert "52 are sound" in (collection / "card.md").read_text()
    assert CollectionCard.read(collection).review["reviewed"] == 60


@pytest.mark.parametrize(
    ("column", "word", "message"),
    [
        ("sound", "maybe", "row 2: sound is 'maybe'"),
        ("id", "nobody", "row 2: the collection"),
        ("id", "q0", "row 2: the question 'q0' isn't in the collection"),
    ],
)
def test_a_row_that_makes_no_sense_is_an_error_with_its_number(
    collection: Path, tmp_path: Path, column: str, word: str, message: str
) -> None:
    sample = draw_sample(collection, 3)
    values = sample[column].to_list()
    values[1] = word
    write_sample(sample.with_columns(pl.Series(column, values)), tmp_path / "review.csv")
    with pytest.raises(FormatError, match=message):
        read_review(tmp_path / "review.csv", collection)


def test_a_review_without_verdicts_and_a_collection_without_questions_are_errors(
    collection: Path, tmp_path: Path
) -> None:
    write_sample(draw_sample(collection, 3).drop("sound"), tmp_path / "review.csv")
    with pytest.raises(FormatError, match="no column 'sound'"):
        read_review(tmp_path / "review.csv", collection)
    Drafts([Draft("a!", "request", "a", {"text": "Write a report."})]).write(collection / "drafts.jsonl")
    with pytest.raises(FormatError, match="build questions"):
        draw_sample(collection, 3)


def test_the_commands(collection: Path, tmp_path: Path) -> None:
    runner, path = CliRunner(), tmp_path / "review.csv"
    drawn = runner.invoke(main, ["build", "sample", str(collection), "-n", "4", "-o", str(path)])
    assert drawn.exit_code == 0 and "4 questions to review" in drawn.output
    write_sample(pl.read_csv(path, infer_schema=False).with_columns(pl.lit("yes").alias("sound")), path)
    read = runner.invoke(main, ["build", "review", str(collection), str(path)])
    assert read.exit_code == 0, read.output
    assert "of 4 reviewed, 4 are sound [" in read.output
