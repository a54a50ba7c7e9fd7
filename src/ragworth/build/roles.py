"""The models of a build by role: who writes questions, who reads passages, who judges answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ragworth.core.errors import InputError
from ragworth.llm.contract import Card

RULES, NONE = "rules", "none"
ROLES = ("writer", "reader", "judge")


class Roles(NamedTuple):
    """Written forms of models: ``rules`` writes without one, ``none`` leaves a role empty."""

    writer: str = RULES
    reader: str = NONE
    judge: str = NONE


def assign_roles(
    models: Sequence[str] = (), *, writer: str | None = None, reader: str | None = None, judge: str | None = None
) -> Roles:
    """Give each role a model: those named for it, and the others in order, so that roles differ where they can.

    Without any model, rules write and the embedded model reads. One model takes all roles; two share them so that the
    writer is neither reader nor judge.
    """
    if len(models) > len(ROLES):
        raise InputError(f"{len(models)} models were named", expected="three at most: writer, reader and judge")
    if not models:
        return Roles(writer or RULES, reader or "embedded", judge or NONE)
    default = {1: (0, 0, 0), 2: (0, 1, 1), 3: (0, 1, 2)}[len(models)]
    chosen = [given or models[at] for given, at in zip((writer, reader, judge), default, strict=True)]
    return Roles(*chosen)


def shared_role_warnings(cards: Mapping[str, Card]) -> list[str]:
    """Warnings about models with two roles, by identity: a model is lenient with its own texts."""
    risks = {
        ("writer", "reader"): "its questions may suit it better than other readers",
        ("writer", "judge"): "it judges answers to its own questions",
        ("reader", "judge"): "it judges its own answers",
    }
    return [
        f"the {one} and the {other} are the same model ({cards[one].name}): {risk}"
        for (one, other), risk in risks.items()
        if one in cards and other in cards and cards[one].identity == cards[other].identity
    ]
