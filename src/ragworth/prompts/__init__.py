"""Prompts: one text file each, with named slots, any of which a user's file replaces.

A file is made of messages, each headed by its role in brackets on a line of its own::

    What comes before the first message is about the prompt and is never sent.

    [system]
    Answer from the document alone.

    [user]
    Document: {{passage*}}

    {{#answers}}Accepted: {{.}}
    {{/answers}}
    Question: {{query}}

``{{name}}`` is filled in; a star marks a passage, which may be cut when the prompt is too long.
``{{#name}}…{{/name}}`` is repeated for each item of a list, inside of which ``{{.}}`` is the item itself (or its
fields go by their names) and ``{{number}}`` counts from 1; for a text it is there if the text is not empty;
``{{#name?}}`` need not be given. Two brackets that are meant are written ``\\{{``. What is filled in is never read as
part of the template. Blanks around a message are dropped.

``{{fence}}`` is a short code that occurs in nothing that is filled in. Written before and after a text, it marks where
the text begins and ends, which the text itself can't imitate.

There are two sets of prompts. The prompts of the set ``fenced`` mark passages and answers in that way. Those of the set
``plain`` do not: they are what the embedded reader was trained on, and it is asked with nothing else.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from ragworth.errors import PromptError
from ragworth.prompts.template import Template, parse_template

PROMPT_FOLDER = Path(__file__).parent
PROMPT_SETS = {"fenced": PROMPT_FOLDER, "plain": PROMPT_FOLDER / "plain"}
"""Where the prompts of each set are; what ``plain`` lacks is the same in both."""


def prompt_names(folder: str | Path | None = None) -> list[str]:
    """The prompts that ship with ragworth, and those of a user's folder."""
    folders = [PROMPT_FOLDER, *([Path(folder)] if folder else [])]
    return sorted({path.stem for each in folders for path in each.glob("*.txt")})


def load_prompt(name: str, folder: str | Path | None = None, prompt_set: str = "fenced") -> Template:
    """A prompt by its name, or by the path of a file.

    Parameters
    ----------
    folder: a user's own prompts: a file ``NAME.txt`` there replaces the prompt of that name. ``plain`` or ``fenced``,
        where no such folder, is one of ragworth's own sets, whatever ``prompt_set`` says.
    prompt_set: which of ragworth's own, where the user has none; a model's card says which it takes (``card.prompts``).
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
        f"there is no prompt {name!r}",
        expected=", ".join(prompt_names()),
        remedy="name one of these, or a file of your own",
    )


def _read(path: Path, name: str) -> Template:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise PromptError(f"it cannot be read: {error}", file=str(path), expected="a text file in UTF-8") from error
    about, messages = parse_template(text, str(path))
    # What is sent decides the version; the words about it do not.
    written = "\n".join(f"[{role}]\n{source}" for role, source, _ in messages)
    version = hashlib.sha256(written.encode()).hexdigest()[:12]
    return Template(name, about, tuple(messages), version, str(path))
