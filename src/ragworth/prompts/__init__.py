"""Prompts: text files with named slots, which a user's own files can replace.

A file consists of messages, each headed by its role in brackets on a line of its own::

    Text before the first message describes the prompt and is never sent.

    [system]
    Answer from the document alone.

    [user]
    Document: {{passage*}}

    {{#answers}}Accepted: {{.}}
    {{/answers}}
    Question: {{query}}

``{{name}}`` is a slot; a star marks a passage, which may be truncated if the prompt is too long.
``{{#name}}…{{/name}}`` is repeated for each item of a list. Inside it, ``{{.}}`` is the item (or its fields go by
their names) and ``{{number}}`` counts from 1. For a text, it appears if the text isn't empty. ``{{#name?}}`` is
optional. Write ``\\{{`` for two literal brackets. Values are never parsed as part of the template. Whitespace around
a message is dropped.

``{{fence}}`` is a short code that occurs in none of the values. Before and after a text, it marks where the text
begins and ends, which the text itself can't imitate.

There are two sets of prompts. Those in ``fenced`` mark passages and answers in that way. Those in ``plain`` don't: the
embedded reader was trained on them and is used with nothing else.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from ragworth.errors import PromptError
from ragworth.prompts.template import Template, parse_template

PROMPT_FOLDER = Path(__file__).parent
PROMPT_SETS = {"fenced": PROMPT_FOLDER, "plain": PROMPT_FOLDER / "plain"}
"""Folders of each set; what ``plain`` lacks is the same in both."""


def prompt_names(folder: str | Path | None = None) -> list[str]:
    """Names of the prompts that ship with ragworth, and of those in a user's folder."""
    folders = [PROMPT_FOLDER, *([Path(folder)] if folder else [])]
    return sorted({path.stem for each in folders for path in each.glob("*.txt")})


def load_prompt(name: str, folder: str | Path | None = None, prompt_set: str = "fenced") -> Template:
    """Load a prompt by name, or by the path of a file.

    Parameters
    ----------
    folder: the user's own prompts: a file ``NAME.txt`` there replaces the prompt of that name. ``plain`` or ``fenced``,
        unless such a folder exists, is one of ragworth's own sets and overrides ``prompt_set``.
    prompt_set: which of ragworth's own sets to use by default; a model's card says which it takes (``card.prompts``).
    """
    if folder is not None and Path(folder).name in PROMPT_SETS and not Path(folder).is_dir():
        prompt_set, folder = Path(folder).name, None
    own = Path(folder) / f"{name}.txt" if folder else None
    if folder is not None and not Path(folder).is_dir():
        raise PromptError(
            "no such folder",
            file=str(folder),
            expected=f"a folder of prompts, NAME.txt each, or {' or '.join(PROMPT_SETS)}",
        )
    if own is not None and own.is_file():
        return _read(own, name)
    if name in prompt_names():
        path = PROMPT_SETS[prompt_set] / f"{name}.txt"
        return _read(path if path.is_file() else PROMPT_FOLDER / f"{name}.txt", name)
    path = Path(name)
    if path.is_file():
        return _read(path, path.stem)
    raise PromptError(
        f"unknown prompt {name!r}",
        expected=", ".join(prompt_names()),
        remedy="use one of these, or your own file",
    )


def _read(path: Path, name: str) -> Template:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise PromptError(f"it cannot be read: {error}", file=str(path), expected="a text file in UTF-8") from error
    about, messages = parse_template(text, str(path))
    # The version depends on what is sent, not on the description.
    written = "\n".join(f"[{role}]\n{source}" for role, source, _ in messages)
    version = hashlib.sha256(written.encode()).hexdigest()[:12]
    return Template(name, about, tuple(messages), version, str(path))
