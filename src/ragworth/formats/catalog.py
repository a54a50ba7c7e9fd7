"""The formats by name."""

from __future__ import annotations

from ragworth.core.registry import Registry
from ragworth.formats.contract import Format

FORMATS: Registry[Format] = Registry(
    "format",
    "ragworth.formats",
    {
        "trec": "ragworth.formats.trec:FORMAT",
        "table": "ragworth.formats.tables:FORMAT",
        "conversations": "ragworth.formats.conversations:FORMAT",
        "canard": "ragworth.formats.canard:FORMAT",
        "cast": "ragworth.formats.cast:FORMAT",
        "mtrag": "ragworth.formats.mtrag:FORMAT",
        "jsonl": "ragworth.formats.jsonl:FORMAT",
        "beir": "ragworth.formats.beir:FORMAT",
        "exam": "ragworth.formats.exam:FORMAT",
        "crux": "ragworth.formats.crux:FORMAT",
        "ir_datasets": "ragworth.formats.ir_datasets:FORMAT",
        "ragas": "ragworth.formats.ragas:FORMAT",
        "deepeval": "ragworth.formats.deepeval:FORMAT",
        "ragchecker": "ragworth.formats.ragchecker:FORMAT",
        "open-rag-eval": "ragworth.formats.open_rag_eval:FORMAT",
        "langchain": "ragworth.formats.langchain:FORMAT",
        "llamaindex": "ragworth.formats.llamaindex:FORMAT",
        "haystack": "ragworth.formats.haystack:FORMAT",
        "inspect_ai": "ragworth.formats.inspect_ai:FORMAT",
        "otlp": "ragworth.formats.logs.trace_specs:OTLP_FORMAT",
        "phoenix": "ragworth.formats.logs.trace_specs:PHOENIX_FORMAT",
        "langfuse": "ragworth.formats.logs.trace_specs:LANGFUSE_FORMAT",
        "trulens": "ragworth.formats.logs.trace_specs:TRULENS_FORMAT",
        "mlflow": "ragworth.formats.logs.trace_specs:MLFLOW_FORMAT",
        "langsmith": "ragworth.formats.logs.trace_specs:LANGSMITH_FORMAT",
        "promptfoo": "ragworth.formats.promptfoo:FORMAT",
        "pytrec_eval": "ragworth.formats.nested_scores:FORMAT",
        "chat": "ragworth.formats.chat:FORMAT",
        "log": "ragworth.formats.log:FORMAT",
    },
)
