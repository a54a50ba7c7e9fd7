"""The formats by name, and paths with the name of a format before them."""

from __future__ import annotations

from typing import NamedTuple

from ragworth.core.registry import Registry
from ragworth.formats.contract import Format, Head
from ragworth.formats.files import PathOrStr, suffix_of

FORMATS: Registry[Format] = Registry(
    "format",
    "ragworth.formats",
    {
        "trec": "ragworth.formats.trec:FORMAT",
        "table": "ragworth.formats.tables:FORMAT",
        "conversations": "ragworth.formats.conversations:OWN",
        "canard": "ragworth.formats.conversations:CANARD",
        "cast": "ragworth.formats.conversations:CAST",
        "mtrag": "ragworth.formats.conversations:MTRAG",
        "jsonl": "ragworth.formats.jsonl:FORMAT",
        "beir": "ragworth.formats.beir:FORMAT",
        "exam": "ragworth.formats.exam:FORMAT",
        "crux": "ragworth.formats.crux:FORMAT",
        "ir_datasets": "ragworth.formats.ir_datasets:FORMAT",
        "ragas": "ragworth.formats.logs.tools:RAGAS",
        "deepeval": "ragworth.formats.logs.tools:DEEPEVAL",
        "ragchecker": "ragworth.formats.logs.tools:RAGCHECKER",
        "open-rag-eval": "ragworth.formats.logs.tools:OPEN_RAG_EVAL",
        "langchain": "ragworth.formats.logs.frameworks:LANGCHAIN",
        "llamaindex": "ragworth.formats.logs.frameworks:LLAMAINDEX",
        "haystack": "ragworth.formats.logs.frameworks:HAYSTACK",
        "inspect_ai": "ragworth.formats.logs.tools:INSPECT",
        "otlp": "ragworth.formats.logs.trace_specs:OTLP_FORMAT",
        "phoenix": "ragworth.formats.logs.trace_specs:PHOENIX_FORMAT",
        "langfuse": "ragworth.formats.logs.trace_specs:LANGFUSE_FORMAT",
        "trulens": "ragworth.formats.logs.trace_specs:TRULENS_FORMAT",
        "mlflow": "ragworth.formats.logs.trace_specs:MLFLOW_FORMAT",
        "langsmith": "ragworth.formats.logs.trace_specs:LANGSMITH_FORMAT",
        "promptfoo": "ragworth.formats.logs.tools:PROMPTFOO",
        "outcomes": "ragworth.formats.outcomes:FORMAT",
        "pytrec_eval": "ragworth.formats.nested_scores:FORMAT",
        "chat": "ragworth.formats.logs.frameworks:CHAT",
        "log": "ragworth.formats.logs.engine:FORMAT",
    },
)


class Spec(NamedTuple):
    """A path, or the head of its file, and the format named before it; "" if none is."""

    format: str
    path: PathOrStr

    @classmethod
    def of(cls, text: PathOrStr) -> Spec:
        """Split ``FORMAT:PATH``. Only the names of formats count, because file names may have a colon."""
        if isinstance(text, Head):
            return cls(text.format, text)
        prefix, colon, rest = str(text).partition(":")
        return cls(prefix, rest) if colon and prefix in FORMATS else cls("", text)

    @property
    def suffix(self) -> str:
        """The extension in lower case, without that of compression; the format's first if the file has none of its."""
        own = suffix_of(self.path)
        endings = FORMATS.get(self.format).endings if self.format else ()
        return own if own in endings or not endings else endings[0]
