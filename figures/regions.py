"""The marked regions of a page: find them, replace them, compare them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import zip_longest

NAME = r"[a-z0-9][\w.-]*"
BLOCK = re.compile(rf"^( *)<!-- figure: ({NAME}) -->\n(.*?)^ *<!-- end figure -->$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(rf"<!--=({NAME})-->(.*?)<!--/-->", re.DOTALL)
MARK = re.compile(r"<!-- (?:end )?figure\b.*|<!--=.*?-->|<!--/-->")
SOURCES = re.compile(r"<!-- sources -->\n(.*?)<!-- end sources -->", re.DOTALL)
HEAD = ("| numbers | command | date | commit | machine |", "| --- | --- | --- | --- | --- |")
NUMBER = re.compile(r"[-−+]?\d+(?:,\d{3})*(?:\.\d+)?(?:e[-+]?\d+)?")


class MarkError(ValueError):
    """A page has marks that do not belong together."""


def regions(page: str) -> dict[str, str]:
    """The text of every region by name, without indentation and blank lines around it."""
    blocks = [(name, _outdent(body, indent)) for indent, name, body in BLOCK.findall(page)]
    found = [*blocks, *((name, " ".join(body.split())) for name, body in INLINE.findall(BLOCK.sub("", page)))]
    if stray := MARK.search(INLINE.sub("", BLOCK.sub("", page))):
        line = stray[0].strip()
        raise MarkError(
            f"{line!r} has no other half: a block is '<!-- figure: NAME -->' … '<!-- end figure -->', each on its own "
            "line; a number is '<!--=NAME-->0.5<!--/-->'"
        )
    made: dict[str, str] = {}
    for name, body in found:
        if made.setdefault(name, body) != body:
            raise MarkError(f"region {name!r} is there twice with different text: {made[name]!r} and {body!r}")
    return made


def bare(page: str) -> list[tuple[int, str]]:
    """Lines with a decimal or a percentage that no region covers, with their numbers; code blocks aside."""
    blank = re.compile(r"[^\n]")

    def hidden(found: re.Match[str]) -> str:
        return blank.sub(" ", found[0])

    rest = page
    for pattern in (BLOCK, INLINE, re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL), re.compile(r"`[^`\n]*`")):
        rest = pattern.sub(hidden, rest)
    lines = page.splitlines()
    return [(n, lines[n - 1]) for n, line in enumerate(rest.splitlines(), 1) if re.search(r"\d\.\d|\d %", line)]


def replaced(page: str, new: Mapping[str, str]) -> str:
    """The page with new text in the regions that are named; others stay."""

    def block(found: re.Match[str]) -> str:
        indent, name, _ = found.groups()
        if name not in new:
            return found[0]
        body = "".join(f"{indent}{line}".rstrip() + "\n" for line in new[name].splitlines())
        return f"{indent}<!-- figure: {name} -->\n\n{body}\n{indent}<!-- end figure -->"

    def inline(found: re.Match[str]) -> str:
        name = found[1]
        return f"<!--={name}-->{new[name]}<!--/-->" if name in new and "\n" not in new[name] else found[0]

    return INLINE.sub(inline, BLOCK.sub(block, page))


def sources(page: str) -> dict[str, str]:
    """The rows of the table that says where and when each figure of a page was computed, by figure."""
    found = SOURCES.search(page)
    rows = found[1].splitlines() if found else []
    return {row.split("|")[1].strip(): row for row in rows if row.startswith("|") and row not in HEAD}


def with_source(page: str, figure: str, command: str, *where: str) -> str:
    """The page with the command, date, commit and machine of a figure in that table, which is made if need be."""
    escaped = command.replace("|", "\\|")
    shown = escaped if "`" in escaped else f"`{escaped}`"
    rows = sources(page) | {figure: f"| {' | '.join((figure, shown, *where))} |"}
    table = "\n".join((*HEAD, *(rows[name] for name in sorted(rows))))
    block = f"<!-- sources -->\n\n{table}\n\n<!-- end sources -->"
    if SOURCES.search(page):
        return SOURCES.sub(lambda _: block, page)
    return f"{page.rstrip()}\n\n## Where the numbers come from\n\n{block}\n"


def _outdent(body: str, indent: str) -> str:
    return "\n".join(line.removeprefix(indent).rstrip() for line in body.strip("\n").splitlines())


def same(old: str, new: str) -> bool:
    """Whether two texts say the same: equal but for blanks, and decimals off by at most one in the last digit."""
    if _skeleton(old) != _skeleton(new):
        return False
    return all(_close(a, b) for a, b in zip(NUMBER.findall(old), NUMBER.findall(new), strict=True))


def _skeleton(text: str) -> str:
    return " ".join(re.sub(r"-{3,}|─+", "-", NUMBER.sub("#", text)).split())


def _close(a: str, b: str) -> bool:
    """Whole numbers are counts and must be equal; decimals may be rounded otherwise on another processor."""
    if a == b:
        return True
    if "." not in a or "." not in b:
        return False
    digits = min(len(text.partition(".")[2].partition("e")[0]) for text in (a, b))
    return abs(value(a) - value(b)) <= 1.001 * 10.0**-digits * (10.0 ** int(a.partition("e")[2] or 0))


def value(text: str) -> float:
    """A number as it is written in a page."""
    return float(text.replace("−", "-").replace(",", ""))


def same_shape(old: str, new: str) -> bool:
    """Whether two texts have the same lines and cells, whatever their numbers: for trials with few data."""
    if "|" not in old:
        return old.count("\n") == new.count("\n")
    pairs = zip_longest(old.splitlines(), new.splitlines(), fillvalue="")
    return all(a.count("|") == b.count("|") for a, b in pairs)
