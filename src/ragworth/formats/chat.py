"""Read logs of chat models: messages, or requests with the responses of OpenAI's and Azure's APIs, as JSON lines.

The question is the user's last message, and the answer the assistant's after it. Passages are what tools returned in
between, the results of a file search, or the citations of Azure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ragworth.formats.contract import FileSample
from ragworth.formats.log_files import LogRows
from ragworth.formats.logs.engine import LogFormat, Reject, parse_rows
from ragworth.formats.logs.fields import FIELDS, FieldFinder
from ragworth.formats.logs.messages import find_answer, find_question, parse_if_json
from ragworth.formats.logs.passages import as_passages
from ragworth.formats.logs.records import LogRecord
from ragworth.formats.logs.values import as_row
from ragworth.formats.values import WrongLineError, objects

REPLIES = ("response", "completion", "output")
LISTS = ("results", "documents", "chunks", "passages", "hits", "matches", "data")
EARLIER = "only the last question of each conversation is read"


def _recognise(sample: FileSample) -> bool:
    first = sample.rows[0] if sample.rows else {}
    return _messages(first) is not None or ("input" in first and _reply(first) is not None) or _has_choices(first)


def _has_choices(row: Mapping[str, Any]) -> bool:
    reply = _reply(row)
    return isinstance(reply, Mapping) and bool({"choices", "output"} & set(reply))


def _messages(row: Mapping[str, Any]) -> list[Mapping[str, Any]] | None:
    """The messages of a conversation."""
    for name in ("messages", "input", "request"):
        value = row.get(name)
        value = value.get("messages") if isinstance(value, Mapping) else value
        if isinstance(value, list) and value and all(isinstance(each, Mapping) and "role" in each for each in value):
            return value
    return None


def _reply(row: Mapping[str, Any]) -> Any:
    """The response of an API: an object with choices or output, or a list of output items."""
    for name in REPLIES:
        value = row.get(name)
        if isinstance(value, Mapping) and ("choices" in value or isinstance(value.get("output"), list)):
            return value
        if isinstance(value, list) and value and all(isinstance(each, Mapping) and "type" in each for each in value):
            return value
    return row if isinstance(row.get("choices"), list) else None


def _parse(rows: LogRows, finder: FieldFinder, reject: Reject) -> Iterator[LogRecord]:
    def prepared() -> Iterator[tuple[int, Any]]:
        for place, value in rows.values:
            row = as_row(value)
            if row is None:
                yield place, value
                continue
            messages, reply = _messages(row) or [], _reply(row)
            if sum(each.get("role") == "user" for each in messages) > 1 and EARLIER not in finder.notes:
                finder.notes.append(EARLIER)
            yield place, _plain_row(row, messages, reply)

    yield from parse_rows(rows._replace(values=prepared()), finder, reject)


def _plain_row(row: Mapping[str, Any], messages: list[Mapping[str, Any]], reply: Any) -> dict[str, Any]:
    """A row with the question, the answer and the passages as fields; ids of calls are not those of questions."""
    asked = max((i for i, each in enumerate(messages) if each.get("role") == "user"), default=-1)
    after = messages[asked + 1 :]
    said = [each for each in after if each.get("role") == "assistant"]
    made = {name: value for name, value in row.items() if name not in ("messages", "request", "id")}
    request = as_row(row.get("request")) or {}
    if messages:
        made.pop("input", None)
        made["question"] = find_question(messages)
    elif isinstance(request.get("input"), str):
        made["question"] = request["input"]
    if reply is not None or said:  # or else the row has the answer under a name of its own
        made = {name: value for name, value in made.items() if name not in REPLIES}
        made["response"] = find_answer(said if reply is None else reply)
    passages = [*_tool_results(after), *_found(reply)]
    if passages or any(each.get("role") == "tool" for each in after):
        made["contexts"] = passages
    return made


def _tool_results(messages: list[Mapping[str, Any]]) -> Iterator[Any]:
    for message in messages:
        if message.get("role") in ("tool", "function") and message.get("content"):
            content = parse_if_json(message["content"])
            if isinstance(content, Mapping):
                content = next((content[name] for name in LISTS if isinstance(content.get(name), list)), content)
            items = content if isinstance(content, list) else [content]
            yield from items if _are_passages(items) else [str(message["content"])]


def _are_passages(items: list[Any]) -> bool:
    try:
        return all(each.text is not None for each in as_passages(items) or ())
    except WrongLineError:
        return False


def _found(reply: Any) -> Iterator[Any]:
    """Results of a file search, and citations of Azure."""
    output = reply.get("output") if isinstance(reply, Mapping) else reply
    for item in objects(output):
        # Several chunks of a file have its id, so the text names the passage.
        yield from ({"text": each.get("text"), "score": each.get("score")} for each in objects(item.get("results")))
    for choice in objects(reply.get("choices")) if isinstance(reply, Mapping) else []:
        context = as_row((as_row(choice.get("message")) or {}).get("context")) or {}
        yield from ({"text": each.get("content")} for each in objects(context.get("citations")))


FORMAT = LogFormat(
    name="chat",
    title="a log of a chat model",
    expected='{"messages": [{"role": "user", …}, …]}, or a request with the response of the API',
    names=FIELDS,
    recognise=_recognise,
    parse=_parse,
).format()
