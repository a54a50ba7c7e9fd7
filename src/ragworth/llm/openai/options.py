"""Parse ``openai:MODEL@URL`` and its options before anything is sent."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from ipaddress import ip_address
from typing import Annotated, Any, Literal, NamedTuple
from urllib.parse import SplitResult, urlsplit

from pydantic import Field, TypeAdapter, ValidationError

from ragworth.core.errors import ModelError, quote_short

DEFAULT_URL = "https://api.openai.com/v1"

_WITH_URL = re.compile(r"(?P<model>.*)@(?P<url>https?://.*)", re.IGNORECASE | re.DOTALL)
_HOST_WITHOUT_SCHEME = re.compile(r"(localhost|[\w.-]+:\d+|\d+(\.\d+){3})(/.*)?")
_SECRET = re.compile(r"api[_-]?key|authorization|secret|password|access[_-]?token|bearer", re.I)

OWN_FIELDS = {"model", "messages", "prompt", "n", "stop", "seed", "temperature", "top_p", "echo", "stream"} | {
    *("max_tokens", "max_completion_tokens", "logprobs", "top_logprobs", "prompt_logprobs", "response_format"),
}
"""Fields of requests that ragworth sets, by the options of its commands."""


class ModelAddress(NamedTuple):
    """A model's name and address."""

    model: str
    url: str
    """The base of all paths, without trailing slash."""

    @property
    def host(self) -> str:
        return urlsplit(self.url).hostname or ""

    @property
    def is_loopback(self) -> bool:
        """Return whether the host is this machine."""
        return is_loopback(self.host)

    @property
    def is_private(self) -> bool:
        """Return whether nobody can read the traffic: TLS, or this machine."""
        return self.url.startswith("https:") or self.is_loopback


def is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def parse_address(rest: str) -> ModelAddress:
    """Parse ``MODEL@URL`` or ``MODEL``. Names may contain ``@``, ``:`` and ``/``; the last ``@http`` counts."""
    match = _WITH_URL.fullmatch(rest.strip())
    model, url = (match["model"], match["url"]) if match else (rest.strip(), DEFAULT_URL)
    tail = model.rpartition("@")[2]
    if match is None and "@" in model and _HOST_WITHOUT_SCHEME.fullmatch(tail):
        raise ModelError(f"{quote_short(tail)} looks like an address without http://", remedy=f"write @http://{tail}")
    if not model or not model.isprintable():
        raise ModelError(f"{quote_short(model)} is not a model name", expected="openai:MODEL@URL")
    return ModelAddress(model, _base_url(url))


def _base_url(url: str) -> str:
    """The address without trailing slash. A host alone gets the usual ``/v1``."""
    parts = _split_url(url)
    host = parts.hostname or ""
    if parts.query or parts.fragment:
        raise ModelError(
            f"the address of {host} has a query or a fragment (? or #) in it",
            remedy="leave it out; keys go into the environment variable RAGWORTH_API_KEY"
            + (", and Azure needs no api-version at https://RESOURCE.openai.azure.com/openai/v1" * is_azure(host)),
        )
    path = parts.path.rstrip("/")
    if path.endswith("/completions"):
        raise ModelError(
            f"the address ends in {quote_short(path)}, which is one of its functions",
            remedy="use the part before it, which mostly ends in /v1",
        )
    return f"{parts.scheme.lower()}://{parts.netloc.lower()}{path or '/v1'}"


def _split_url(url: str) -> SplitResult:
    """Split an address, and refuse it without a host or with a password, which would be stored."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        parts, host = urlsplit(""), None
    if not host or not url.isprintable() or " " in url or parts.scheme.lower() not in ("http", "https"):
        raise ModelError(f"{quote_short(url)} is not an address", expected="such as http://localhost:8000/v1")
    if parts.username is not None or parts.password is not None:
        raise ModelError(
            f"the address of {host} has a user or a password in it",
            remedy="put the key into the environment variable RAGWORTH_API_KEY",
        )
    return parts


def is_azure(host: str) -> bool:
    """Azure lists models, but is asked for deployments, which have names of their own."""
    return host.endswith(".azure.com")


def unencrypted_host(address: ModelAddress, proxy: str | None) -> str:
    """The host to which texts and the key would go unencrypted over a network; empty if there is none."""
    if not address.is_private:
        return address.host
    host = "" if address.url.startswith("https:") else proxy_host(proxy or "")
    return "" if is_loopback(host) else host


def proxy_host(url: str) -> str:
    """The host of the option ``proxy``; empty if it is not an address."""
    try:
        return _split_url(url).hostname or ""
    except ModelError:
        return ""


Positive = Annotated[int, Field(strict=True, ge=1)]
Count = Annotated[int, Field(strict=True, ge=0)]


@dataclass(frozen=True)
class EndpointOptions:
    """Options of an endpoint. None leaves a limit out, or to the endpoint."""

    concurrency: Positive = 16
    """Maximum concurrent requests; fewer when the endpoint is overloaded."""
    deadline: Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)] = 120.0
    """Seconds for one request, including retries, from when it is first let through."""
    retries: Count = 6
    context_length: Positive | None = None
    vocabulary: Annotated[int, Field(strict=True, ge=2)] | None = None
    """Size of the vocabulary, for entropy bounds."""
    api: Literal["auto", "chat", "completions"] = "auto"
    on_long: Literal["error", "cut"] = "error"
    key_variable: Annotated[str, Field(min_length=1)] | None = None
    """The environment variable with the key, instead of the usual ones."""
    reasoning_tokens: Count = 0
    """Tokens to allow on top of the length of each text, for reasoning."""
    proxy: str | None = None
    """The address of an HTTP proxy. The environment's proxies are not used."""
    extra_body: Any = None
    """Further fields of requests, as a mapping or JSON, such as ``reasoning_effort`` or a server's own."""

    @property
    def extra_fields(self) -> dict[str, Any]:
        return _parse_extra_body(self.extra_body or "") or {}


def check_options(options: dict[str, Any]) -> EndpointOptions:
    """Check the options, listing everything that is wrong with them in one error."""
    names = [one.name for one in fields(EndpointOptions)]
    wrong = [f"{name} is unknown" for name in options if name not in names]
    checked = EndpointOptions()
    try:
        checked = TypeAdapter(EndpointOptions).validate_python({k: v for k, v in options.items() if k in names})
    except ValidationError as error:
        wrong += [
            f"{each['loc'][0]} is {quote_short(each['input'])}: {each['msg'][:1].lower()}{each['msg'][1:]}"
            for each in error.errors(include_url=False)
        ]
    if options.get("extra_body") is not None and (problem := _extra_body_problem(options["extra_body"])):
        wrong.append(f"extra_body {problem}")
    if checked.proxy is not None and not proxy_host(checked.proxy):
        wrong.append("proxy is not an address such as http://proxy.example:3128, without user and password")
    if wrong:
        raise ModelError("wrong options for an endpoint", more=tuple(wrong), expected=f"some of {', '.join(names)}")
    return checked


def _parse_extra_body(value: Any) -> dict[str, Any] | None:
    """Fields as a mapping, or as JSON; None if it is neither."""
    try:
        fields = json.loads(value or "{}") if isinstance(value, str) else value
        if not isinstance(fields, Mapping) or any(not isinstance(name, str) for name in fields):
            return None
        copy: dict[str, Any] = json.loads(json.dumps(fields, allow_nan=False))
    except (ValueError, TypeError, RecursionError):
        return None
    return copy


def _extra_body_problem(value: Any) -> str:
    """Say what is wrong with the option; empty if nothing is."""
    fields = _parse_extra_body(value)
    if fields is None:
        return 'is not an object such as {"reasoning_effort": "low"}, as a table in TOML or JSON on the command line'
    if own := sorted(OWN_FIELDS & fields.keys()):
        return f"sets {', '.join(own)}, which ragworth sets itself"
    if any(_SECRET.search(name) for name in _names(fields)):
        return "has a key in it: keys go into an environment variable, because options are stored"
    return ""


def _names(value: Any) -> Iterator[str]:
    """The names of all fields, also of those within others."""
    if isinstance(value, dict):
        yield from value
        value = list(value.values())
    for part in value if isinstance(value, list) else ():
        yield from _names(part)
