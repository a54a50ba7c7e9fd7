"""Folders of Markdown, HTML, PDF and text become documents; nothing is lost without a word."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import pytest

from ragworth.core.errors import FormatError, InputError
from ragworth.retrieval.documents import corpus_hash, read_documents
from ragworth.retrieval.plain_text import html_file, join_lines, markdown_file, pdf_file


def small_pdf(text: str) -> bytes:
    """A PDF of one page, written by hand: an invented file with a text layer."""
    stream = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET".encode()
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R "
        b"/Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    out, places = BytesIO(), []
    out.write(b"%PDF-1.4\n")
    for number, body in enumerate(objects, 1):
        places.append(out.tell())
        out.write(b"%d 0 obj\n%s\nendobj\n" % (number, body))
    table = out.tell()
    out.write(b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1))
    out.writelines(b"%010d 00000 n \n" % place for place in places)
    out.write(b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, table))
    return out.getvalue()


def test_markdown_loses_its_marks_and_keeps_its_words() -> None:
    source = b"""---
tags: x
---
# The **mill**

It was [built](https://example.org "t") by `Ann`
in 1820.
<!-- a note -->
- one
- two

```sh
make test
```
"""
    found = markdown_file(source)
    assert found.title == "The mill"
    assert found.text == "The mill\n\nIt was built by Ann in 1820.\n\none\ntwo\n\nmake test"


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("<p>Seen <span style='color:red; display: none'>not <b>this</b></span>here</p>", "Seen here"),
        ("<div hidden><div>no</div>neither</div><p>yes", "yes"),
        ("<ul><li hidden>no<li>yes</ul>", "yes"),
        ("<p hidden>no<br>no<input></p>yes", "yes"),
        ("<p style='visibility:hidden'>no</p><p style='display:block'>yes</p>", "yes"),
        (
            "<p>In summer.<sup>1</sup> In 1931<sup><a href='#n'>[2]</a></sup> it ran.<sup>3, 4</sup></p>",
            "In summer. In 1931 it ran.",
        ),
        ("<p>10<sup>6</sup> m<sup>2</sup> by x<sup>n</sup>, 4 km<sup>2</sup></p>", "10⁶ m² by xⁿ, 4 km²"),
        ("<p>the 2<sup>nd</sup> M<sup>lle</sup></p>", "the 2nd Mlle"),
        ("<table><tr><td>a<sup>*</sup></td><td>b</td></tr></table>", "a | b"),
    ],
)
def test_hidden_text_and_marks_of_footnotes_are_left_out(source: str, text: str) -> None:
    assert html_file(source.encode()).text == text


def test_html_shows_what_a_browser_shows() -> None:
    source = (
        b"<html><head><title>The mill</title><style>p {}</style></head><body><nav>Home</nav>"
        b"<p>It was built\n by Ann &amp; Bob.</p><script>alert(1)</script><ul><li>one<li>two</ul></body></html>"
    )
    found = html_file(source)
    assert found.title == "The mill"
    assert found.text == "It was built by Ann & Bob.\n\none\ntwo"


def test_a_table_keeps_its_rows() -> None:
    rows = b"<tr>\n <td><p>Basis</p></td>\n <td>4,90 <b>EUR</b><br>a month</td>\n</tr><tr><td>Komfort<td>7,80"
    assert html_file(b"<table>" + rows + b"</table><p>after").text == (
        "Basis | 4,90 EUR a month\nKomfort | 7,80\n\nafter"
    )
    page = b"<table><tr><td><h1>Home</h1><p>text<table><tr><td>a<td>b</table></table>"
    assert html_file(page).text == "Home text\n\na | b"


def test_a_pdf_has_its_text_layer() -> None:
    pytest.importorskip("pypdf")
    assert "Ann built the mill" in pdf_file(small_pdf("Ann built the mill in 1820.")).text


def test_a_pdf_keeps_the_rows_of_tables_and_joins_divided_words() -> None:
    page = "The lock was rebuilt after the groß-\nen flood had broken both of the outer\nGates. All of it is steel.\n"
    table = "Vessel Fee\nBarge 120 EUR\nYacht 35 EUR"
    joined = "The lock was rebuilt after the großen flood had broken both of the outer Gates. All of it is steel.\n"
    assert join_lines(page + table) == joined + table + "\n"
    wrapped = "It was rebuilt after the great flood in\nArden by the county."
    assert join_lines("\n".join([*[wrapped] * 9, "x" * 300, "", "iron"])).count("in Arden") == 9
    assert join_lines("An end.\n\niron").startswith("An end.\n\niron")


def test_a_pdf_says_what_it_lacks() -> None:
    """A scan has no text, a scanned page among others is noted, and a password is an error that says so."""
    pypdf = pytest.importorskip("pypdf")
    writer = pypdf.PdfWriter(clone_from=BytesIO(small_pdf("Ann built the mill.")))
    writer.add_blank_page()
    mixed, scan, locked = BytesIO(), BytesIO(), BytesIO()
    writer.write(mixed)
    assert pdf_file(mixed.getvalue()).note == "1 of 2 pages have no text (scanned or empty)"
    writer.encrypt("secret", algorithm="RC4-128")
    writer.write(locked)
    with pytest.raises(FormatError, match="password"):
        pdf_file(locked.getvalue())
    blank = pypdf.PdfWriter()
    blank.add_blank_page(612, 792)
    blank.write(scan)
    with pytest.raises(FormatError, match="no text on its 1 page") as caught:
        pdf_file(scan.getvalue())
    assert "OCR" in str(caught.value)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pytest.importorskip("pypdf")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a b.md").write_text("# Mills\n\nAnn built the mill.\n")
    (tmp_path / "b.html").write_text("<p>The mill burned.</p>")
    (tmp_path / "c.txt").write_text("It was rebuilt.")
    (tmp_path / "d.pdf").write_bytes(small_pdf("Bob rebuilt the mill."))
    (tmp_path / "empty.txt").write_text(" \n")
    (tmp_path / ".hidden.md").write_text("secret")
    (tmp_path / "picture.png").write_bytes(b"\x89PNG")
    return tmp_path


def test_a_folder_of_four_kinds(folder: Path) -> None:
    found = read_documents([folder])
    assert found.frame["document"].to_list() == ["b.html", "c.txt", "d.pdf", "sub/a b.md"]
    assert "1 file of other kinds left out (.png 1)" in found.notes[0]
    assert "1 document without a text left out ('empty.txt')" in found.notes[1]


def test_files_that_cannot_be_read_are_listed_together_or_left_out(folder: Path) -> None:
    (folder / "bad.txt").write_bytes(b"caf\xe9")
    (folder / "bad.pdf").write_bytes(b"%PDF-1.4 nothing")
    with pytest.raises(FormatError) as caught:
        read_documents([folder])
    assert "bad.pdf" in str(caught.value) and "bad.txt" in str(caught.value)
    notes = read_documents([folder], skip_bad_files=True).notes
    assert sum("left out: " in note for note in notes) == 2


def test_the_same_id_twice_is_an_error(folder: Path) -> None:
    with pytest.raises(InputError, match=r"two documents have the id 'c\.txt'"):
        read_documents([folder, folder / "c.txt"])


def test_the_hash_is_that_of_the_texts_and_not_of_their_order(folder: Path) -> None:
    frame = read_documents([folder]).frame
    assert corpus_hash(frame) == corpus_hash(frame.reverse())
    changed = frame.with_columns(frame["text"].str.replace("Ann", "Anna"))
    assert corpus_hash(frame) != corpus_hash(changed)
