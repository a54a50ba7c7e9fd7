"""What servers reply, each in its own dialect, with the toy model behind all of them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tests.llm.openai import endpoint_toy as toy


class Refusal(Exception):  # noqa: N818
    """A reply with another status than 200."""

    def __init__(self, status: int, message: str) -> None:
        self.status = status
        self.body = {"error": {"message": message, "type": "invalid_request_error", "code": status}}
        super().__init__(message)


@dataclass(frozen=True)
class Traits:
    """What a server is like. ``openai`` tells no tokens; ``vllm`` and ``llamacpp`` have functions of their own."""

    kind: Literal["openai", "vllm", "llamacpp"] = "openai"
    chat: bool = True
    completions: bool = True
    top: int = 20
    """How many of the likeliest tokens it shows at most; it refuses to show more."""
    schema: bool = True
    several: bool = True
    """Whether it heeds ``n``."""
    limit: str = "max_tokens"
    context: int = 2048
    owner: str = "system"
    without: tuple[str, ...] = ()
    """Paths that it does not have."""
    refuses: tuple[tuple[str, str], ...] = ()
    """Parameters that it refuses, or ``system``, each with the message."""
    key: str = ""
    """The only key it takes; any will do where it is empty."""


MODEL = "toy"


def reply(traits: Traits, path: str, body: Any) -> Any:
    """What comes back from a path, or `Refusal`."""
    shared: dict[str, Callable[[Traits, Any], Any]] = {"/v1/models": _models}
    if traits.chat:
        shared["/v1/chat/completions"] = _chat
    if traits.completions:
        shared["/v1/completions"] = _completions
    own: dict[str, Callable[[Traits, Any], Any]] = {
        "openai": {},
        "vllm": {"/tokenize": _vllm_tokenize, "/detokenize": lambda _, body: {"prompt": toy.decode(body["tokens"])}},
        "llamacpp": {
            "/props": _props,
            "/tokenize": lambda _, body: {"tokens": toy.encode(body["content"], bos=body["add_special"])},
            "/apply-template": lambda _, body: {"prompt": toy.template(body["messages"])},
            "/completion": _native,
        },
    }[traits.kind]
    table = shared | own
    if path not in table or path in traits.without:
        raise Refusal(404, f"no such path: {path}")
    return table[path](traits, body)


def _models(traits: Traits, _: Any) -> Any:
    entry: dict[str, Any] = {"id": MODEL, "object": "model", "owned_by": traits.owner}
    if traits.kind == "vllm":
        entry |= {"owned_by": "vllm", "max_model_len": traits.context}
    if traits.kind == "llamacpp":
        meta = {"n_vocab": len(toy.PIECES), "n_ctx_train": 10 * traits.context, "ftype": "Q4_1"}
        entry |= {"owned_by": "llamacpp", "meta": meta}
    return {"object": "list", "data": [entry]}


def _props(traits: Traits, _: Any) -> Any:
    return {"default_generation_settings": {"n_ctx": traits.context}, "chat_template": "{{ messages }}"}


def _vllm_tokenize(_: Traits, body: Any) -> Any:
    if "messages" in body:
        ids = toy.encode("<|bos|>" + toy.template(body["messages"]))
    else:
        ids = toy.encode(body["prompt"], bos=body["add_special_tokens"])
    return {"tokens": ids, "count": len(ids), "max_model_len": 2048}


def _chat(traits: Traits, body: Any) -> Any:
    ids = toy.encode(toy.template(body["messages"]), bos=True)
    _check(traits, body, ids, body.get("top_logprobs", 0))
    choices: list[Any] = []
    for made in _made(traits, body, ids):
        form = body.get("response_format") if traits.schema else None
        text = json.dumps(_instance(form["json_schema"]["schema"])) if form else toy.decode(made.ids)
        choice: dict[str, Any] = {"index": len(choices), "finish_reason": made.finish}
        choice["message"] = {"role": "assistant", "content": _stopped(text, body)}
        if body.get("logprobs"):
            choice["logprobs"] = {"content": _entries(traits, ids, made.ids, body["top_logprobs"])}
        choices.append(choice)
    return {"object": "chat.completion", "choices": choices, "usage": _usage(ids, choices, body)}


def _completions(traits: Traits, body: Any) -> Any:
    prompt = body["prompt"]
    ids = prompt if isinstance(prompt, list) else toy.encode(prompt, bos=traits.kind != "openai")
    _check(traits, body, ids, body.get("logprobs", 0))
    choices: list[Any] = []
    for made in _made(traits, body, ids):
        choice: dict[str, Any] = {"index": len(choices), "finish_reason": made.finish}
        choice["text"] = _stopped(toy.decode(made.ids), body)
        top = body.get("logprobs")
        if top and traits.kind == "llamacpp":
            choice["logprobs"] = {"content": _entries(traits, ids, made.ids, top)}
        elif top:
            choice["logprobs"] = _columns(ids, made.ids, top, body.get("return_tokens_as_token_ids", False))
        if traits.kind == "vllm" and "prompt_logprobs" in body:
            choice["prompt_logprobs"] = [None, *(_told(ids[:i], ids[i]) for i in range(1, len(ids)))]
        choices.append(choice)
    return {"object": "text_completion", "choices": choices, "usage": _usage(ids, choices, body)}


def _native(traits: Traits, body: Any) -> Any:
    """llama.cpp's own function, which goes on with the tokens that it is held to."""
    forced = [int(one) for one in re.findall(r"<\[(\d+)\]>", body["grammar"])]
    return {"completion_probabilities": _entries(traits, body["prompt"], forced, body["n_probs"])}


def _check(traits: Traits, body: Any, ids: Sequence[int], top: int) -> None:
    for name, message in traits.refuses:
        if name in body or any(one["role"] == name for one in body.get("messages", ())):
            raise Refusal(400, message)
    if traits.limit not in body:
        raise Refusal(400, f"Unsupported parameter: use '{traits.limit}' instead.")
    if top > traits.top:
        raise Refusal(400, f"top_logprobs must be at most {traits.top}")
    if len(ids) + body[traits.limit] > traits.context:
        raise Refusal(400, f"This model's maximum context length is {traits.context} tokens.")
    if body["model"] != MODEL and traits.kind != "llamacpp":
        raise Refusal(404, f"The model `{body['model']}` does not exist.")


def _made(traits: Traits, body: Any, ids: Sequence[int]) -> list[toy.Made]:
    count = body.get("n", 1) if traits.several else 1
    seeds = [body.get("seed", 0) + i for i in range(count)]
    return [toy.generate(ids, body[traits.limit], body.get("temperature", 1.0), seed) for seed in seeds]


def _stopped(text: str, body: Any) -> str:
    return min((text.split(sign)[0] for sign in body.get("stop", ())), key=len, default=text)


def _entries(traits: Traits, before: Sequence[int], after: Sequence[int], top: int) -> list[Any]:
    """Log-probabilities in the form of chats."""
    made = []
    for i, token in enumerate(after):
        context = [*before, *after[:i]]
        entry = _entry(traits, context, token)
        entry["top_logprobs"] = [_entry(traits, context, one) for one in toy.likeliest(context, top)]
        made.append(entry)
    return made


def _entry(traits: Traits, context: Sequence[int], token: int) -> dict[str, Any]:
    entry = {"token": toy.decode([token]), "logprob": toy.logprobs(context)[token], "bytes": list(toy.PIECES[token])}
    return entry | ({"id": token} if traits.kind == "llamacpp" else {})


def _columns(before: Sequence[int], after: Sequence[int], top: int, as_ids: bool) -> Any:
    """Log-probabilities in the older form."""

    def name(token: int) -> str:
        return f"token_id:{token}" if as_ids else toy.decode([token])

    contexts = [[*before, *after[:i]] for i in range(len(after))]
    values = [toy.logprobs(context)[token] for context, token in zip(contexts, after, strict=True)]
    tops = [{name(one): toy.logprobs(context)[one] for one in toy.likeliest(context, top)} for context in contexts]
    first = [None] if not before else values[:1]
    return {"tokens": [name(token) for token in after], "token_logprobs": [*first, *values[1:]], "top_logprobs": tops}


def _told(context: Sequence[int], token: int) -> Any:
    value = {"logprob": toy.logprobs(context)[token], "rank": 1, "decoded_token": toy.decode([token])}
    return {str(token): value}


def _usage(ids: Sequence[int], choices: Sequence[Any], body: Any) -> Any:
    new = sum(body.get("max_tokens", 1) for _ in choices)
    return {"prompt_tokens": len(ids), "completion_tokens": new, "total_tokens": len(ids) + new}


def _instance(schema: Any) -> Any:
    """The simplest value that a schema allows."""
    if "enum" in schema:
        return schema["enum"][0]
    if schema.get("type") == "object":
        return {name: _instance(one) for name, one in schema["properties"].items()}
    return {"boolean": True, "integer": 0, "string": "x"}[schema["type"]]
