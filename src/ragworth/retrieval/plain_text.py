"""The title and plain text of a Markdown, HTML, PDF or text file."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Callable
from html.parser import HTMLParser
from io import BytesIO
from typing import NamedTuple

from ragworth.core.errors import FormatError, MissingExtraError, format_count

SKIPPED = frozenset({"script", "style", "noscript", "template", "svg", "nav", "head"})
"""HTML elements whose text nobody reads. The title inside `head` is read separately."""

_BLOCK_NAMES = (
    "address article aside blockquote br dd div dl dt figcaption footer form h1 h2 h3 h4 h5 h6 header hr li main ol p "
    "pre section table td th tr ul"
)
BLOCKS = frozenset(_BLOCK_NAMES.split())
CELLS = frozenset({"td", "th"})
CELL_END = " | "
MAX_CELL = 300
"""Characters up to which the text of a table's cell is put on one line. Longer ones are the layout of a page."""
SHORTEST_WRAPPED = 30
"""Characters of a PDF's line from which on the next line may continue its sentence with a capital letter."""
PARAGRAPHS = BLOCKS - {"br", "td", "th", "tr", "li", "dt", "dd"}

FRONT_MATTER = re.compile(
    r"\A(---|\+\+\+)[ \t]*\n(?=(?:[ \t]*(?:#[^\n]*)?\n)*(?:[\w.\"'-]+[ \t]*[:=]|\1))(.*?\n|)\1[ \t]*(?:\n|\Z)",
    re.DOTALL,
)
"""YAML or TOML in front of a page. A rule at its beginning, which other text follows, is none."""
FRONT_TITLE = re.compile(
    r"^title[ \t]*[:=][ \t]*(?:\"([^\"\n]*)\"|'([^'\n]*)'|([^\s#>|&*!\[{\"'][^\n]*?))[ \t]*(?:[ \t]#[^\n]*)?$",
    re.MULTILINE | re.IGNORECASE,
)
FOOTNOTE = re.compile(r"\[\^[^\]\s]+\](?!:)")
"""A reference to a footnote in Markdown."""
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
FENCE = re.compile(r"^[ \t]*(?:```|~~~).*$", re.MULTILINE)
HEADING = re.compile(r"^#{1,6}[ \t]+(.*?)[ \t]*#*$", re.MULTILINE)
RULE = re.compile(r"^[ \t]*(?:[-*_][ \t]*){3,}$", re.MULTILINE)
TABLE_RULE = re.compile(
    r"^(?=.*(?:\||--))[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*(?:\n|\Z)", re.MULTILINE
)
"""The line between the header and the rows of a table. It is left out, so that these follow each other."""
LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()\s]*(?:\([^()]*\)[^()\s]*)*(?:\s+\"[^\"]*\")?\)")
REFERENCE = re.compile(r"^\[[^\]]+\]:\s+\S+.*$", re.MULTILINE)
BULLET = re.compile(r"^([ \t]*)(?:[-*+]|\d+\.)[ \t]+", re.MULTILINE)
TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
STRONG = re.compile(r"(\*\*|__|(?<![\w*])\*(?=\S)|(?<!\w)_(?=\S))(.+?)(?<=\S)\1(?!\w)")
WRAPPED = re.compile(r"(?<=[\w,;)`*\]])[ \t]*\n[ \t]*(?=[a-z(])")
"""A line end inside a sentence."""
HIDDEN_STYLE = re.compile(r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse))\b", re.IGNORECASE)
CLOSED_BY_ITSELF = frozenset({"p", "li", "dt", "dd", "option"})
"""HTML elements that one of the same kind ends, if it follows directly."""
VOID = frozenset(["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"])
"""HTML elements without an end."""
_MARK = r"[\[(]?(?:\d{1,3}|[a-z]|[*†‡§¶]+|note \d+|citation needed)[\])]?"
FOOTNOTE_MARK = re.compile(rf"{_MARK}(?:\s*,?\s*{_MARK})*", re.IGNORECASE)
BEFORE_POWER = re.compile(r"(?:\d|\b(?:\w|[cdknµ]?m|ft|in|mi|yd|sq|sec|miles?|inch|inches|feet|yards?))$")
"""What a raised number is a power of: a number, a variable or a unit."""
POWERS = str.maketrans("0123456789+-−n", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻ⁿ")
POWER = re.compile(r"[+\-−]?(?:\d{1,3}|n)")
BLANK_LINES = re.compile(r"\n[ \t]*(?:\n[ \t]*)+")


class PlainText(NamedTuple):
    title: str
    text: str
    note: str = ""
    """What was lost, such as pages without text."""


def tidy(text: str) -> str:
    """The text with plain line ends, no soft hyphens or trailing blanks, and at most one blank line in a row."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").replace("\xa0", " ").replace("\xad", "").split("\n")
    return BLANK_LINES.sub("\n\n", "\n".join(line.rstrip() for line in lines)).strip()


def decode(data: bytes) -> str:
    """Decode UTF-8 or UTF-16, by the byte-order mark."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16")
    return data.decode("utf-8-sig")


def text_file(data: bytes) -> PlainText:
    return PlainText("", WRAPPED.sub(" ", tidy(decode(data))))


def markdown_file(data: bytes) -> PlainText:
    """Markdown without its marks. Code stays, without its fences and with its backticks removed."""
    text = decode(data).replace("\r\n", "\n")
    front = FRONT_MATTER.match(text)
    text = COMMENT.sub("", text[front.end() :] if front else text)
    first = HEADING.search(FENCE.sub("", text))
    text = "\n".join(part if code else WRAPPED.sub(" ", part) for part, code in _split_code(text))
    for pattern, by in ((FENCE, ""), (REFERENCE, ""), (RULE, ""), (TABLE_RULE, ""), (HEADING, r"\n\1\n")):
        text = pattern.sub(by, text)
    text = FOOTNOTE.sub("", text)
    text = LINK.sub(r"\1", LINK.sub(r"\1", BULLET.sub(r"\1", text)))  # twice: an image may be the text of a link
    text = STRONG.sub(r"\2", TAG.sub("", text)).replace("`", "")
    text = re.sub(r"^[ \t]*>[ \t]?", "", text, flags=re.MULTILINE)
    title = STRONG.sub(r"\2", LINK.sub(r"\1", first[1])).replace("`", "") if first else ""
    return PlainText((_front_title(front[2]) if front else "") or title.strip(), tidy(text))


def _front_title(front: str) -> str:
    """The title in YAML or TOML in front of a page."""
    found = FRONT_TITLE.search(front)
    return next(filter(None, found.groups()), "").strip() if found else ""


def _split_code(text: str) -> list[tuple[str, bool]]:
    """The parts between fences, and whether each is code. Headings and bullets begin a line of their own."""
    parts = FENCE.split(text)
    return [(f"\n{part}\n" if number % 2 else part, number % 2 == 1) for number, part in enumerate(parts)]


class _Extractor(HTMLParser):
    """Collects the text that a browser would show, and the title."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.title: list[str] = []
        self._open: list[str] = []
        """Open elements, from the first one whose text nobody reads."""
        self._counts: Counter[str] = Counter()
        """How many of them are open, since pages may have many ends without a beginning."""
        self._in_title = False
        self._preformatted = 0
        self._cell: int | None = None
        """Where the parts of the open cell begin."""
        self._raised: int | None = None
        """The same of raised text."""
        self._linked = False
        """Whether raised text has a link."""

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self._in_title |= tag == "title"
        if tag == "body":
            self._close(0)  # a head that was never closed
        self._skip(tag, dict(attributes))
        self._preformatted += tag == "pre"
        if tag in CELLS or tag == "tr":
            self._end_cell()
        elif tag == "table":
            self._cell = None
        self._break(tag)
        if tag in CELLS and not self._open:
            self._cell = len(self.parts)
        if tag == "sup" and not self._open:
            self._raised, self._linked = len(self.parts), False
        self._linked |= tag == "a"

    def _skip(self, tag: str, attributes: dict[str, str | None]) -> None:
        """Begin an element whose text nobody reads, or one inside it."""
        if self._open and tag in CLOSED_BY_ITSELF and self._open[-1] == tag:
            self._close(len(self._open) - 1)
        unread = tag in SKIPPED or "hidden" in attributes or bool(HIDDEN_STYLE.search(attributes.get("style") or ""))
        if (unread or self._open) and tag not in VOID:
            self._open.append(tag)
            self._counts[tag] += 1

    def _close(self, at: int) -> None:
        self._counts -= Counter(self._open[at:])
        del self._open[at:]

    def handle_endtag(self, tag: str) -> None:
        self._in_title &= tag != "title"
        if self._counts[tag]:
            self._close(next(at for at in range(len(self._open) - 1, -1, -1) if self._open[at] == tag))
        self._preformatted -= tag == "pre" and self._preformatted > 0
        if tag == "sup":
            self._end_raised()
        if tag in CELLS or tag in ("tr", "table"):
            self._end_cell()
        if tag != "tr":
            self._break(tag)

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.title.append(data)
        elif not self._open and (data.strip() or self.parts[-1:] != [CELL_END]):
            self.parts.append(data if self._preformatted else re.sub(r"\s+", " ", data))

    def _end_raised(self) -> None:
        """Leave out the mark of a footnote, and write a power with raised digits."""
        if self._raised is None or self._raised > len(self.parts):
            return
        raised, before = "".join(self.parts[self._raised :]).strip(), "".join(self.parts[: self._raised][-3:])
        is_power = POWER.fullmatch(raised) and BEFORE_POWER.search(before) and not self._linked
        if is_power:
            self.parts[self._raised :] = [raised.translate(POWERS)]
        elif FOOTNOTE_MARK.fullmatch(raised) and (self._linked or not raised.isalpha()):
            del self.parts[self._raised :]
        self._raised = None

    def _end_cell(self) -> None:
        """Put the cell on the line of its row, unless it is a part of the page."""
        if self._cell is None:
            return
        line = " ".join("".join(self.parts[self._cell :]).split())
        if len(line) <= MAX_CELL:
            self.parts[self._cell :] = [line, CELL_END]
        else:
            self.parts.append("\n")
        self._cell = None

    def _break(self, tag: str) -> None:
        if tag in BLOCKS - CELLS and not self._open:
            self.parts.append("\n\n" if tag in PARAGRAPHS else "\n")


def html_file(data: bytes) -> PlainText:
    parser = _Extractor()
    parser.feed(decode(data))
    parser.close()
    text = "\n".join(line.strip().removesuffix(CELL_END.rstrip()) for line in "".join(parser.parts).split("\n"))
    return PlainText(" ".join("".join(parser.title).split()), tidy(text))


def pdf_file(data: bytes) -> PlainText:
    """The text layer of a PDF. A scanned page has none, which the note says; a file without any text is an error."""
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
    """The text of a PDF with its wrapped lines joined. Short lines stay: headings and the rows of tables."""
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
    ".md": markdown_file,
    ".markdown": markdown_file,
    ".html": html_file,
    ".htm": html_file,
    ".xhtml": html_file,
    ".pdf": pdf_file,
    ".txt": text_file,
    ".text": text_file,
    ".rst": text_file,
}
