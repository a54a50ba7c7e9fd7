"""Write the sample files in ``tests/formats/files`` with the libraries themselves.

    pip install ragas==0.4.3 deepeval==4.3.1 langchain-core==1.7.2 llama-index-core==0.14.25 haystack-ai==3.4.0 \
        inspect-ai==0.3.285 open-rag-eval==0.3.0 ragchecker==0.1.9 arize-phoenix-client==3.5.0 \
        openinference-semantic-conventions==0.1.42 openinference-instrumentation==0.1.72 opentelemetry-sdk==1.45.2 \
        opentelemetry-exporter-otlp-proto-common==1.45.1 langfuse==5.0.4
    python tests/formats/make_files.py [NAME …]

These are the versions that wrote the files in this repository. The content is invented. Each function below writes the
files of one library; one that is not installed is reported and skipped. Langfuse's exports come from its server, so
those files are written by hand after its documented fields; Langfuse's package only checks their scores.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

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


def folder(name: str) -> Path:
    made = HERE / name
    made.mkdir(parents=True, exist_ok=True)
    return made


def _module(package: str, file: str) -> Any:
    """Load one module of an installed package without the package."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise ImportError(f"{package} is not installed")
    home = Path(spec.origin).parent
    sys.modules.setdefault(package, ModuleType(package)).__path__ = [str(home)]
    inner = importlib.util.spec_from_file_location(f"{package}.{Path(file).stem}", home / file)
    assert inner is not None
    assert inner.loader is not None
    module = importlib.util.module_from_spec(inner)
    sys.modules[inner.name] = module
    inner.loader.exec_module(module)
    return module


def ragas() -> None:
    from ragas import EvaluationDataset, SingleTurnSample

    samples = [
        SingleTurnSample(
            user_input=question,
            retrieved_contexts=passages,
            response=answer,
            reference=accepted,
            reference_contexts=[passages[-1 if number else 0]],
        )
        for number, ((question, accepted, answer), passages) in enumerate(zip(QUESTIONS, PASSAGES, strict=True))
    ]
    dataset = EvaluationDataset(samples=samples)
    dataset.to_jsonl(folder("ragas") / "dataset.jsonl")
    dataset.to_csv(folder("ragas") / "dataset.csv")
    frame = dataset.to_pandas()
    frame["faithfulness"] = [1.0, 0.0, None]
    frame.to_csv(folder("ragas") / "result.csv")  # with the index, as people save it
    frame.to_parquet(folder("ragas") / "result.parquet")


def deepeval() -> None:
    from deepeval.dataset import EvaluationDataset, Golden
    from deepeval.test_case import LLMTestCase

    parts = [
        {
            "input": q,
            "actual_output": answer,
            "expected_output": accepted,
            "retrieval_context": passages,
            "context": [passages[0]],
        }
        for (q, accepted, answer), passages in zip(QUESTIONS, PASSAGES, strict=True)
    ]
    dataset = EvaluationDataset(goldens=[Golden(**part) for part in parts])
    for kind in ("json", "csv", "jsonl"):
        dataset.save_as(kind, directory=str(folder("deepeval")), file_name="goldens", include_test_cases=False)
    cases = [LLMTestCase(**part).model_dump(by_alias=True) for part in parts]
    for case, score in zip(cases, (1.0, 0.0, 0.5), strict=True):
        case["metricsData"] = [{"name": "Answer Relevancy", "score": score, "success": score > 0.4}]
    _write("deepeval/test_run.json", {"testCases": cases})


def ragchecker() -> None:
    container = _module("ragchecker", "container.py")  # the package itself needs PyTorch
    RAGResult, RAGResults, RetrievedDoc = container.RAGResult, container.RAGResults, container.RetrievedDoc  # noqa: N806

    results = [
        RAGResult(
            query_id=str(number),
            query=question,
            gt_answer=accepted,
            response=answer,
            retrieved_context=[RetrievedDoc(doc_id=f"00{i}", text=text) for i, text in enumerate(passages)],
        )
        for number, ((question, accepted, answer), passages) in enumerate(zip(QUESTIONS, PASSAGES, strict=True))
    ]
    (folder("ragchecker") / "inputs.json").write_text(RAGResults(results=results).to_json(indent=1))
    for result, f1 in zip(results, (100.0, 0.0, 0.0), strict=True):
        result.metrics = {"precision": f1, "recall": f1, "f1": f1}
    (folder("ragchecker") / "results.json").write_text(RAGResults(results=results).to_json(indent=1))


def langchain_core() -> None:
    from langchain_core.documents import Document
    from langchain_core.load import dumpd

    documents = [
        Document(id=f"d{i}{j}", page_content=t, metadata={"source": "a.txt"})
        for i, p in enumerate(PASSAGES)
        for j, t in enumerate(p)
    ]
    with (folder("langchain") / "documents.jsonl").open("w") as stream:
        stream.writelines(document.model_dump_json() + "\n" for document in documents)
    results = [
        {"input": q, "context": [dumpd(Document(page_content=text)) for text in passages], "answer": answer}
        for (q, _, answer), passages in zip(QUESTIONS, PASSAGES, strict=True)
    ]
    _write("langchain/chain_results.json", results)


def llama_index() -> None:
    from llama_index.core.base.response.schema import Response
    from llama_index.core.schema import NodeWithScore, TextNode

    nodes = [[TextNode(id_=f"n{i}{j}", text=t) for j, t in enumerate(p)] for i, p in enumerate(PASSAGES)]
    _write("llamaindex/nodes.json", [node.to_dict() for each in nodes for node in each])
    results = []
    for (question, _, answer), some in zip(QUESTIONS, nodes, strict=True):
        response = Response(answer, [NodeWithScore(node=node, score=0.9 - i / 10) for i, node in enumerate(some)])
        sources = [node.model_dump() for node in response.source_nodes]
        results.append({"query": question, "response": response.response, "source_nodes": sources})
    _write("llamaindex/responses.json", results)


def haystack() -> None:
    from haystack import Document
    from haystack.dataclasses import GeneratedAnswer

    answers = [
        GeneratedAnswer(
            data=answer,
            query=q,
            documents=[Document(content=t, score=0.5, id=f"h{i}{j}") for j, t in enumerate(PASSAGES[i])],
            meta={},
        )
        for i, (q, _, answer) in enumerate(QUESTIONS)
    ]
    _write("haystack/answers.json", [answer.to_dict() for answer in answers])
    _write("haystack/documents.json", [document.to_dict() for answer in answers for document in answer.documents])


def inspect_ai() -> None:
    import tiktoken

    # inspect_ai counts tokens with a vocabulary that tiktoken would download.
    tiktoken.get_encoding = lambda name: SimpleNamespace(encode=lambda text, **options: text.split())
    from inspect_ai import Task, eval
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ModelOutput, get_model
    from inspect_ai.scorer import includes
    from inspect_ai.solver import generate

    samples = [
        Sample(id=f"s{i}", input=q, target=accepted, metadata={"retrieved_contexts": PASSAGES[i]})
        for i, (q, accepted, _) in enumerate(QUESTIONS)
    ]
    outputs = [ModelOutput.from_content("mockllm/model", answer) for _, _, answer in QUESTIONS]
    model = get_model("mockllm/model", custom_outputs=outputs)
    place = folder("inspect_ai")
    for old in place.iterdir():
        old.unlink()
    task = Task(dataset=samples, solver=generate(), scorer=includes(), name="harrow")
    eval(task, model=model, log_dir=str(place), log_format="json", display="none", max_samples=1)
    (made,) = place.iterdir()
    log = json.loads(made.read_text())
    for sample in log["samples"]:  # the events are the bulk of a log, and nothing reads them here
        sample.update(events=[], attachments={}, events_data=None)
    del log["eval"]["revision"]
    made.unlink()
    _write("inspect_ai/log.json", log)


def open_rag_eval() -> None:
    connector = _module("open_rag_eval", "connectors/connector.py")  # the package itself needs PyTorch

    place = folder("open_rag_eval")
    (place / "queries.csv").write_text(
        "query_id,query\n" + "".join(f"q{i},{q}\n" for i, (q, _, _) in enumerate(QUESTIONS))
    )

    class Fixed(connector.Connector):  # type: ignore[misc, name-defined]
        def process_query(self, query: dict[str, str], run_idx: int = 1) -> list[dict[str, object]]:
            number = int(query["queryId"][1:])
            answer = QUESTIONS[number][2]
            return [
                {"query_id": query["queryId"], "query": query["query"], "query_run": run_idx, "passage_id": f"[{rank}]",
                 "passage": text, "generated_answer": f"{answer} [1]" if rank == 1 else ""}
                for rank, text in enumerate(PASSAGES[number], 1)
            ]  # fmt: skip

    Fixed(str(place / "queries.csv"), str(place / "answers.csv"), max_workers=1, repeat_query=2).fetch_data()
    (place / "queries.csv").unlink()


def _spans() -> list[Any]:
    """Traces as OpenInference's instrumentation of a RAG program makes them."""
    from openinference.semconv.trace import DocumentAttributes, SpanAttributes
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("openinference.instrumentation")
    kind = SpanAttributes.OPENINFERENCE_SPAN_KIND
    for (question, _, answer), passages in zip(QUESTIONS, PASSAGES, strict=True):
        with tracer.start_as_current_span(
            "rag", attributes={kind: "CHAIN", SpanAttributes.INPUT_VALUE: question}
        ) as root:
            with tracer.start_as_current_span(
                "retrieve", attributes={kind: "RETRIEVER", SpanAttributes.INPUT_VALUE: question}
            ) as span:
                for number, text in enumerate(passages):
                    name = f"{SpanAttributes.RETRIEVAL_DOCUMENTS}.{number}"
                    span.set_attribute(f"{name}.{DocumentAttributes.DOCUMENT_CONTENT}", text)
                    span.set_attribute(f"{name}.{DocumentAttributes.DOCUMENT_ID}", f"{number}")
                    span.set_attribute(f"{name}.{DocumentAttributes.DOCUMENT_SCORE}", 0.9 - number / 10)
            with tracer.start_as_current_span("model", attributes={kind: "LLM"}) as span:
                span.set_attribute("llm.input_messages.0.message.role", "user")
                span.set_attribute("llm.input_messages.0.message.content", f"Use these passages: …\n{question}")
                span.set_attribute("llm.output_messages.0.message.role", "assistant")
                span.set_attribute("llm.output_messages.0.message.content", answer)
            root.set_attribute(SpanAttributes.OUTPUT_VALUE, answer)
    return list(exporter.get_finished_spans())


def opentelemetry() -> None:
    from google.protobuf.json_format import MessageToDict
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

    _write("otlp/traces.json", MessageToDict(encode_spans(_spans())))


def phoenix() -> None:
    """Spans as Phoenix's client returns them, and as a data frame in its layout."""
    import pandas as pd

    rows = []
    for span in _spans():
        plain = json.loads(span.to_json())
        attributes = {key: value for key, value in plain["attributes"].items() if "documents" not in key}
        documents: dict[str, dict[str, object]] = {}
        for key, value in plain["attributes"].items():
            if key.startswith("retrieval.documents."):
                number, _, name = key.removeprefix("retrieval.documents.").partition(".")
                documents.setdefault(number, {})[name] = value
        rows.append(
            {
                "name": span.name,
                "span_kind": attributes["openinference.span.kind"],
                "parent_id": plain["parent_id"],
                "context.span_id": plain["context"]["span_id"],
                "context.trace_id": plain["context"]["trace_id"],
                **{f"attributes.{key}": value for key, value in attributes.items()},
                "attributes.retrieval.documents": list(documents.values()) or None,
            }
        )
    frame = pd.DataFrame(rows)
    frame.to_parquet(folder("phoenix") / "spans.parquet")
    frame.to_csv(folder("phoenix") / "spans.csv")
    from phoenix.client.helpers.spans import dataframe_to_spans

    _write("phoenix/spans.json", [dict(span) for span in dataframe_to_spans(frame)])


def langfuse() -> None:
    from langfuse.api.commons.types.score import Score  # noqa: F401 (that the package has what the file describes)

    traces: list[dict[str, Any]] = [
        {
            "id": f"trace-{i}",
            "name": "rag",
            "timestamp": "2026-11-16T19:00:00Z",
            "input": {"question": q},
            "output": {"answer": answer},
            "sessionId": None,
            "userId": "u1",
            "htmlPath": f"/project/p/traces/trace-{i}",
            "latency": 1.2,
            "totalCost": 0.0,
            "observations": [
                {
                    "id": f"o{i}a",
                    "traceId": f"trace-{i}",
                    "type": "RETRIEVER",
                    "name": "retrieve",
                    "input": q,
                    "output": [{"page_content": t, "metadata": {}} for t in PASSAGES[i]],
                    "parentObservationId": None,
                },
                {
                    "id": f"o{i}b",
                    "traceId": f"trace-{i}",
                    "type": "GENERATION",
                    "name": "llm",
                    "input": [{"role": "user", "content": f"…{q}"}],
                    "output": {"role": "assistant", "content": answer},
                    "parentObservationId": None,
                },
            ],
            "scores": [
                {
                    "id": f"s{i}",
                    "traceId": f"trace-{i}",
                    "name": "correctness",
                    "value": float(i == 0),
                    "dataType": "NUMERIC",
                    "source": "ANNOTATION",
                }
            ],
        }
        for i, (q, _, answer) in enumerate(QUESTIONS)
    ]
    _write("langfuse/traces.json", traces)
    with (folder("langfuse") / "observations.jsonl").open("w") as stream:
        for trace in traces:
            for each in trace["observations"]:
                row = {
                    "id": each["id"],
                    "trace_id": each["traceId"],
                    "type": each["type"],
                    "name": each["name"],
                    "input": json.dumps(each["input"]),
                    "output": json.dumps(each["output"]),
                    "parent_observation_id": None,
                }
                stream.write(json.dumps(row) + "\n")


def _write(name: str, value: object) -> None:
    path = HERE / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False, default=str) + "\n", encoding="utf-8")


MAKERS = (
    ragas,
    deepeval,
    ragchecker,
    langchain_core,
    llama_index,
    haystack,
    inspect_ai,
    open_rag_eval,
    opentelemetry,
    phoenix,
    langfuse,
)

if __name__ == "__main__":
    for maker in MAKERS:
        if len(sys.argv) > 1 and maker.__name__ not in sys.argv[1:]:
            continue
        try:
            maker()
        except ImportError as error:
            sys.stdout.write(f"{maker.__name__}: skipped, {error}\n")
        except Exception as error:
            sys.stdout.write(f"{maker.__name__}: {type(error).__name__}: {str(error)[:300]}\n")
        else:
            sys.stdout.write(f"{maker.__name__}: written\n")
