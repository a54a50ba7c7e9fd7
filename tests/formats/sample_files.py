"""The content of the sample files in ``tests/formats/files``, which the libraries themselves wrote.

ragas 0.4.3, deepeval 4.3.1, langchain-core 1.7.2, llama-index-core 0.14.25, haystack-ai 3.4.0, inspect-ai 0.3.285,
open-rag-eval 0.3.0, ragchecker 0.1.9, arize-phoenix-client 3.5.0 and opentelemetry-sdk 1.45.2; the content is invented.
Langfuse's exports come from its server, so those files are written by hand after its documented fields.
"""

from __future__ import annotations

from pathlib import Path

from ragworth.formats.detection import examine, unknown_error
from ragworth.formats.heads import read_head

HERE = Path(__file__).parent / "files"

QUESTIONS = [
    ("How tall is the lighthouse of Harrow Point?", "31 metres", "It is 31 metres tall."),
    ("When did the Corwen tram open?", "1904", "The tram opened in 1911."),
    ("Who designed the Alder bridge?", "Ines Varga", "I could not find that in the passages."),
]
PASSAGES = [
    ["The lighthouse of Harrow Point is 31 metres tall.", "Harrow Point lies on the north coast."],
    ["The Corwen tram closed in 1911.", "Corwen is a town of 4,000 people."],
    ["The Alder bridge crosses the Tamm.", "The Alder bridge was designed by Ines Varga in 1958."],
]


def format_of(path: Path) -> str:
    """The name of the format of a file; an unknown one is an error."""
    head, form, _ = examine(read_head(path))
    if form is None:
        raise unknown_error(head)
    return form.name
