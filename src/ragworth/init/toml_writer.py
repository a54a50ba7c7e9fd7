"""Writing TOML: values and names escaped, and a commented file whose keys are switched on."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Any, TypeAlias

from ragworth.annotators import ANNOTATORS
from ragworth.core.registry import Registry
from ragworth.graders.grading import GRADERS
from ragworth.workspace.toml import TomlValue, format_toml, toml_key

TomlTables: TypeAlias = Mapping[str, Mapping[str, TomlValue]]
"""What is set, by table; the one called "" is the head of the file."""

LISTED_TABLES = ("systems", "columns")
"""Tables whose keys are names that the user gives, and whose order counts."""

HEAD = re.compile(r"(# )?\[(\w+)\]$")
KEY = re.compile(r"""# (?:"([^"]+)"|([\w-]+)) = .*?(  # .*)?$""")


def template_text() -> str:
    """The file with every key and nothing set. Judgments and graders that it doesn't explain get a line each."""
    text = files("ragworth.init").joinpath("template.toml").read_text(encoding="utf-8")
    kinds: dict[str, Registry[Any]] = {"judgments": ANNOTATORS, "grades": GRADERS}
    for table, registry in kinds.items():
        others = [name for name in registry.names() if f"# {name} = " not in text]
        lines = "".join(f"# {name} = true  # {registry.get(name).title}\n" for name in others)
        text = text.replace(f"#: {table}\n", lines)
    return text


def fill_template(tables: TomlTables) -> str:
    """The template with these keys set, each where it is explained; a table without keys is there if it is named."""
    return (
        "\n".join(_filled_lines(template_text().splitlines(), {name: dict(keys) for name, keys in tables.items()}))
        + "\n"
    )


def _filled_lines(lines: list[str], tables: dict[str, dict[str, TomlValue]]) -> Iterator[str]:
    table = ""
    named: set[str] = set()
    for line in lines:
        if head := HEAD.match(line):
            table = head[2]
            yield f"[{table}]" if table in tables else line
            continue
        found = KEY.match(line)
        if found is None:
            yield line
            continue
        name, left = found[1] or found[2], tables.get(table, {})
        if table in LISTED_TABLES:
            named |= set(left)
            yield from (f"{toml_key(each)} = {format_toml(value)}" for each, value in left.items())
            left.clear()
        if name in left:
            yield f"{name} = {format_toml(left.pop(name))}{found[3] or ''}"
        elif not (table in LISTED_TABLES and name in named):
            yield line
    unknown = [f"{table}.{name}" for table, left in tables.items() for name in left]
    assert not unknown, f"the template has no {', '.join(unknown)}"
