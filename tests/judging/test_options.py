"""Settings: what may be, what may not, and all that is wrong in one report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from ragworth.core.errors import InputError
from ragworth.judging.contract import option, options_by_name, options_of, validate_options


@dataclass(frozen=True)
class Kettle:
    name: str
    heat: float = option(0.5, "how hot", low=0, high=1)
    litres: int = option(1, "how much", low=1)
    tea: str = option("black", "what for", choices=("black", "green"))
    lid: bool = option(True, "whether it is shut")
    most: int | None = option(None, "where to stop", low=0)
    colour: str = option("", "what it looks like")
    weight: float = option(1.0, "what it weighs")

    def __post_init__(self) -> None:
        validate_options(self, "kettle")


def test_settings_are_the_fields_that_say_what_they_mean() -> None:
    assert [each.name for each in options_of(Kettle)] == ["heat", "litres", "tea", "lid", "most", "colour", "weight"]
    assert options_of(Kettle)[0].metadata["help"] == "how hot"


@pytest.mark.parametrize(
    "fine",
    [{}, {"heat": 0}, {"heat": 1.0}, {"litres": 9}, {"tea": "green"}, {"most": 0}, {"most": None}, {"weight": -2}],
    ids=str,
)
def test_what_may_be(fine: dict[str, Any]) -> None:
    Kettle("k", **fine)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"heat": 1.5}, "heat is 1.5; it may be from 0 to 1"),
        ({"heat": float("nan")}, "from 0 to 1"),
        ({"heat": "warm"}, "heat is 'warm'"),
        ({"heat": True}, "heat is True"),
        ({"litres": 0}, "litres is 0; it may be 1 or more"),
        ({"tea": "mint"}, "black, green"),
        ({"most": -1}, "most is -1"),
        ({"most": "3"}, "most is '3'; it may be a number 0 or more"),
        ({"litres": "3"}, "litres is '3'; it may be a whole number 1 or more"),
        ({"litres": 1.5}, "litres is 1.5; it may be a whole number"),
        ({"litres": True}, "litres is True"),
        ({"litres": None}, "litres is None"),
        ({"lid": "yes"}, "lid is 'yes'; it may be true or false"),
        ({"lid": 1}, "lid is 1; it may be true or false"),
        ({"colour": 3}, "colour is 3; it may be a text"),
        ({"colour": None}, "colour is None"),
        ({"weight": "heavy"}, "weight is 'heavy'; it may be a number"),
        ({"weight": float("inf")}, "weight is inf; it may be a number"),
    ],
    ids=str,
)
def test_what_may_not(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError) as caught:
        Kettle("k", **wrong)
    assert "kettle" in str(caught.value)
    assert words in str(caught.value)


def test_all_that_is_wrong_comes_at_once() -> None:
    with pytest.raises(InputError) as caught:
        Kettle("k", heat=2, litres=0, tea="mint")
    assert all(name in str(caught.value) for name in ("heat", "litres", "tea"))


def test_unknown_names_are_refused_with_the_known_ones() -> None:
    assert options_by_name(Kettle, {"heat": 1}, "kettle") == {"heat": 1}
    with pytest.raises(InputError, match="kettle has no setting form, name") as caught:
        options_by_name(Kettle, {"form": 1, "name": "x"}, "kettle")
    assert "litres" in str(caught.value)
    with pytest.raises(InputError, match=r"did you mean litres\?"):
        options_by_name(Kettle, {"liters": 1}, "kettle")
