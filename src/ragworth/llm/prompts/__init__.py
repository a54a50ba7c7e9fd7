"""Prompts: text files with named slots, which a user's own files can replace. docs/prompts.md describes the format.

There are three sets. The prompts in ``fenced`` mark passages and answers with fences, those in ``plain`` don't, and
those in ``papers`` have the format of the prompts in the papers that ragworth's methods come from.
"""

from __future__ import annotations

import re
from pathlib import Path

from ragworth.core.errors import PromptError
from ragworth.llm.prompts.template import Template, parse_template

PROMPT_FOLDER = Path(__file__).parent
PROMPT_SETS = {"fenced": PROMPT_FOLDER, "plain": PROMPT_FOLDER / "plain", "papers": PROMPT_FOLDER / "papers"}
"""Folders of each set; what a set lacks comes from the model's own set, or from ``fenced``."""

_BUILT_IN_NAME = re.compile(r"[\w-]+(/[\w-]+)?")


def prompt_names(folder: str | Path | None = None) -> list[str]:
    """Names of the prompts that ship with ragworth, and of those in a user's folder or another set."""
    other = PROMPT_SETS.get(named_set(folder) or "", folder)
    folders = [PROMPT_FOLDER, *([Path(other)] if other else [])]
    return sorted({path.stem for each in folders for path in each.glob("*.txt")})


def named_set(folder: str | Path | None) -> str | None:
    """The set that is named where a folder may be; a folder of that name comes first."""
    known = folder is not None and Path(folder).name in PROMPT_SETS and not Path(folder).is_dir()
    return Path(folder).name if folder is not None and known else None


def load_prompt(name: str, folder: str | Path | None = None, prompt_set: str = "fenced") -> Template:
    """Load a prompt by name, or by the path of a file.

    Parameters
    ----------
    name: of a prompt; with a set in front (``papers/relevance``), that of the set; or a file.
    folder: the user's own prompts: a file ``NAME.txt`` there replaces the prompt of that name. The name of one of
        ragworth's own sets, unless such a folder exists, selects that set before ``prompt_set``.
    prompt_set: which of ragworth's own sets to use by default; a model's card says which it takes (``card.prompts``).
    """
    path = find_prompt(name, folder, prompt_set)
    if path is None:
        raise PromptError(
            f"unknown prompt {name!r}",
            expected=", ".join(prompt_names(folder)),
            remedy="use one of these, one of another set, such as papers/relevance, or your own file",
        )
    try:
        return parse_template(path.read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise PromptError(f"it cannot be read: {error}", file=str(path), expected="a text file in UTF-8") from error


def find_prompt(name: str, folder: str | Path | None = None, prompt_set: str = "fenced") -> Path | None:
    """The file of a prompt, as `load_prompt` finds it; None if there is none."""
    chosen = named_set(folder)
    if folder is not None and chosen is None:
        if not Path(folder).is_dir():
            raise PromptError(
                "no such folder",
                file=str(folder),
                expected=f"a folder of prompts, NAME.txt each, or {', '.join(PROMPT_SETS)}",
            )
        if (own := Path(folder) / f"{name}.txt").is_file():
            return own
    if _BUILT_IN_NAME.fullmatch(name):
        for each in (chosen or prompt_set, prompt_set, "fenced"):
            if (path := PROMPT_SETS[each] / f"{name}.txt").is_file():
                return path
    return path if (path := Path(name)).is_file() else None
