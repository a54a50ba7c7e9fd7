"""The title and plain text of a Markdown, HTML, PDF or text file."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from html.parser import HTMLParser
from io import BytesIO
from typing import NamedTuple

from ragworth.core.errors import FormatError, MissingExtraError, format_count

HIDDEN = frozenset({"script", "style", "noscript", "template", "svg", "nav", "head"})
"""HTML elements whose text nobody reads. The title inside `head` is read separately."""
VOID = frozenset({"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"})
"""HTML elements without an end."""
PARAGRAPHS = re.compile(
    "address|article|aside|blockquote|d[ivdlt]+|figcaption|footer|form|h[1-6r]|header|main|[ou]l|p|pre|section|table"
)
LINES = frozenset({"br", "li", "tr"})
POWER = re.compile(r"[+\-−]?(?:\d{1,3}|n)")
POWERS = str.maketrans("0123456789+-−n", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻ⁿ")
HIDDEN_STYLE = re.compile(r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*hidden)\b", re.IGNORECASE)
SHORTEST_WRAPPED = 30
"""Characters of a PDF's line from which on the next line may continue its sentence with a capital letter."""

FRONT_MATTER = re.compile(r"\A---[ \t]*\n(?=[\w\"'-]+[ \t]*:)(.*?\n)---[ \t]*(?:\n|\Z)", re.DOTALL)
"""YAML in front of a page."""
FRONT_TITLE = re.compile(r"^title[ \t]*:[ \t]*[\"']?(.*?)[\"']?[ \t]*$", re.MULTILINE | re.IGNORECASE)
FENCE = re.compile(r"^[ \t]*(?:```|~~~).*$", re.MULTILINE)
HEADING = re.compile(r"^#{1,6}[ \t]+(.*?)[ \t]*#*$", re.MULTILINE)
LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()\s]*(?:\([^()]*\)[^()\s]*)*(?:\s+\"[^\"]*\")?\)")
STRONG = re.compile(r"(\*\*|__|(?<![\w*])\*(?=\S)|(?<!\w)_(?=\S))(.+?)(?<=\S)\1(?!\w)")
MARKS = (
    (r"(?s)<!--.*?-->", ""),
    (r"\[\^[^\]\s]+\](?!:)", ""),  # references to footnotes
    (r"(?m)^\[[^\]]+\]:\s+\S+.*$", ""),  # definitions of links
    (r"(?m)^[ \t]*(?:[-*_][ \t]*){3,}$", ""),  # rules
    (r"(?m)^(?=.*(?:\||--))[ \t|:-]*-[ \t|:-]*(?:\n|\Z)", ""),  # rules of tables
    (r"(?m)^([ \t]*)(?:[-*+]|\d+\.)[ \t]+", r"\1"),
    (r"(?m)^[ \t]*>[ \t]?", ""),
    (r"</?[a-zA-Z][^<>]*>", ""),
)
"""Marks of Markdown outside of code, and what takes their place."""
WRAPPED = re.compile(r"(?<=[\w,;)`*\]])[ \t]*\n[ \t]*(?=[a-z(])")
"""A line end inside a sentence."""
BLANK_LINES = re.compile(r"\n[ \t]*(?:\n[ \t]*)+")


class PlainText(NamedTuple):
    title: str
    text: str
    note: str = ""
    """What was lost, such as pages without text."""


def tidy(text: str) -> str:
    """Return a text with plain line ends, no soft hyphens or trailing blanks, and at most one blank line in a row."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").replace("\xa0", " ").replace("\xad", "").split("\n")
    return BLANK_LINES.sub("\n\n", "\n".join(line.rstrip() for line in lines)).strip()


def text_file(data: bytes) -> PlainText:
    return PlainText("", WRAPPED.sub(" ", tidy(data.decode("utf-8-sig"))))


def markdown_file(data: bytes) -> PlainText:
    """Return Markdown without its marks. Code stays as it is, without its fences."""
    text = data.decode("utf-8-sig").replace("\r\n", "\n")
    front = FRONT_MATTER.match(text)
    parts = FENCE.split(text[front.end() :] if front else text)
    heading = HEADING.search("".join(parts[::2]))
    title = FRONT_TITLE.search(front[1]) if front else None
    # Code, which is every second part, begins a line of its own.
    plain = [f"\n{part}\n" if number % 2 else _without_marks(part) for number, part in enumerate(parts)]
    titles = (title[1] if title else "", _without_emphasis(heading[1]) if heading else "")
    return PlainText(next(filter(None, titles), "").strip(), tidy("".join(plain)))


def _without_marks(text: str) -> str:
    text = WRAPPED.sub(" ", text)
    for pattern, replacement in MARKS:
        text = re.sub(pattern, replacement, text)
    return _without_emphasis(HEADING.sub(r"\n\1\n", text))


def _without_emphasis(text: str) -> str:
    text = LINK.sub(r"\1", LINK.sub(r"\1", text))  # twice: an image may be the text of a link
    return STRONG.sub(r"\2", text).replace("`", "")


class _Extractor(HTMLParser):
    """Collects the text that a browser would show, and the title."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.title: list[str] = []
        self._open: list[str] = []
        """Open elements, from the first one whose text nobody reads."""
        self._inside: list[str] = []
        """Open elements that change how text is read: title, pre, td and th."""
        self._raised: int | None = None
        """Where the parts of open raised text begin."""
        self._linked = False
        """Whether raised text has a link."""

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        about = dict(attributes)
        if tag == "body":
            self._open.clear()  # a head that was never closed
        if self._open[-1:] == [tag] and tag in ("p", "li"):
            self._open.pop()  # ended by one of the same kind
        hidden = tag in HIDDEN or "hidden" in about or HIDDEN_STYLE.search(about.get("style") or "")
        if (hidden or self._open) and tag not in VOID:
            self._open.append(tag)
        if tag in ("td", "th", "tr"):
            self._end_cell()
        if tag in ("title", "pre", "td", "th"):
            self._inside.append(tag)
        if tag == "sup":
            self._raised, self._linked = len(self.parts), False
        self._linked |= tag == "a"
        self._break(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self._open:
            del self._open[len(self._open) - 1 - self._open[::-1].index(tag) :]
        if tag in ("td", "th", "tr", "table"):
            self._end_cell()
        elif tag in self._inside:
            del self._inside[self._inside.index(tag) :]
        elif tag == "sup":
            self._end_raised()
        if tag not in LINES:
            self._break(tag)

    def handle_data(self, data: str) -> None:
        if "title" in self._inside:
            self.title.append(data)
        elif not self._open:
            self.parts.append(data if "pre" in self._inside else re.sub(r"\s+", " ", data))

    def _end_raised(self) -> None:
        """Leave out the mark of a footnote, and write a power with raised digits."""
        if self._raised is None:
            return
        raised, before = "".join(self.parts[self._raised :]).strip(), "".join(self.parts[: self._raised])[-1:]
        if self._linked or not (before.isalnum() and raised.isalnum()):
            del self.parts[self._raised :]
        elif POWER.fullmatch(raised):
            self.parts[self._raised :] = [raised.translate(POWERS)]
        self._raised = None

    def _end_cell(self) -> None:
        if self._inside[-1:] in (["td"], ["th"]):
            self._inside.pop()
            self.parts.append(" | ")

    def _break(self, tag: str) -> None:
        paragraph = PARAGRAPHS.fullmatch(tag)
        if not self._open and (paragraph or tag in LINES):
            in_cell = {"td", "th"} & set(self._inside) and tag != "table"
            self.parts.append(" " if in_cell else "\n\n" if paragraph else "\n")


def html_file(data: bytes) -> PlainText:
    parser = _Extractor()
    parser.feed(data.decode("utf-8-sig"))
    parser.close()
    lines = ("".join(parser.parts)).split("\n")
    text = "\n".join(re.sub(r"[ \t]*\|[ \t]*$", "", re.sub(r"(?<=\S)[ \t]+", " ", line.strip())) for line in lines)
    return PlainText(" ".join("".join(parser.title).split()), tidy(text))


def pdf_file(data: bytes) -> PlainText:
    """Read the text layer of a PDF. A scanned page has none, which the note says; without any text it is an error."""
    try:
        from pypdf import PdfReader
        from pypdf.errors import PyPdfError
    except ImportError as error:
        raise MissingExtraError("pypdf", "pdf", "reading a PDF") from error
    logging.getLogger("pypdf").setLevel(logging.ERROR)
    try:
        reader = PdfReader(BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            raise FormatError("the PDF needs a password", remedy="save it without one")
        pages = [page.extract_text() for page in reader.pages]
        title = str(reader.metadata.title or "") if reader.metadata else ""
    except (PyPdfError, ValueError, KeyError, TypeError, AttributeError, RecursionError, OSError) as error:
        raise FormatError(f"the PDF can't be read ({str(error)[:80]})", remedy="save it again, or as text") from error
    empty = sum(not page.strip() for page in pages)
    if empty == len(pages):
        raise FormatError(
            f"the PDF has no text on its {format_count(len(pages), 'page')}, so it is empty or scanned",
            remedy="recognise its text (OCR)",
        )
    note = f"{empty:,} of {len(pages):,} pages have no text (scanned or empty)" if empty else ""
    return PlainText(title.strip(), tidy(join_lines("\n\n".join(pages))), note)


def join_lines(text: str) -> str:
    """Return the text of a PDF with its wrapped lines joined. Short lines stay: headings and the rows of tables."""
    lines = [line.rstrip() for line in text.split("\n")]
    usual = sorted(map(len, lines))[len(lines) * 9 // 10]  # a few lines may be much longer
    shortest = max(SHORTEST_WRAPPED, usual / 2)
    joined = ""
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        begins_small = bool(line) and following[:1].islower()
        if begins_small and line[-1:] in ("-", "\xad") and line[-2:-1].islower():
            joined += line[:-1]  # a word divided at the end of a line
        elif begins_small or (line and following and line[-1] not in ".!?:" and len(line) >= shortest):
            joined += f"{line} "
        else:
            joined += f"{line}\n"
    return joined


READERS: dict[str, Callable[[bytes], PlainText]] = {
    **dict.fromkeys((".md", ".markdown"), markdown_file),
    **dict.fromkeys((".html", ".htm", ".xhtml"), html_file),
    ".pdf": pdf_file,
    **dict.fromkeys((".txt", ".text", ".rst"), text_file),
}
