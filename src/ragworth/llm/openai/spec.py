"""Parse ``openai:MODEL@URL`` and its options before anything is sent."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from ipaddress import ip_address
from typing import Annotated, Any, Literal, NamedTuple
from urllib.parse import urlsplit

from pydantic import Field, TypeAdapter, ValidationError

from ragworth.core.errors import ModelError, quote_short
from ragworth.llm.openai.extra_body import extra_body_problem, parse_extra_body
from ragworth.llm.openai.rate_limit import RateLimits

DEFAULT_URL = "https://api.openai.com/v1"

_WITH_URL = re.compile(r"(?P<model>.*)@(?P<url>https?://.*)", re.IGNORECASE | re.DOTALL)
_HOST_WITHOUT_SCHEME = re.compile(r"(localhost|[\w.-]+:\d+|\d+(\.\d+){3})(/.*)?")


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
        try:
            return self.host == "localhost" or ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def is_private(self) -> bool:
        """Return whether nobody can read the traffic: TLS, or this machine."""
        return self.url.startswith("https:") or self.is_loopback


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
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        parts, host = urlsplit(""), None
    if not host or not url.isprintable() or " " in url:
        raise ModelError(f"{quote_short(url)} is not an address", expected="such as http://localhost:8000/v1")
    if parts.username is not None or parts.password is not None:
        raise ModelError(
            f"the address of {host} has a user or a password in it",
            remedy="put the key into the environment variable RAGWORTH_API_KEY",
        )
    is_azure = host.endswith(".azure.com")
    if parts.query or parts.fragment:
        raise ModelError(
            f"the address of {host} has a query or a fragment (? or #) in it",
            remedy="leave it out; keys go into the environment variable RAGWORTH_API_KEY"
            + (", and Azure needs no api-version at https://RESOURCE.openai.azure.com/openai/v1" * is_azure),
        )
    path = parts.path.rstrip("/")
    if path.endswith("/completions"):
        raise ModelError(
            f"the address ends in {quote_short(path)}, which is one of its functions",
            remedy="use the part before it, which mostly ends in /v1",
        )
    return f"{parts.scheme.lower()}://{parts.netloc.lower()}{path or '/v1'}"


Positive = Annotated[int, Field(strict=True, ge=1)]
Count = Annotated[int, Field(strict=True, ge=0)]


@dataclass(frozen=True)
class EndpointOptions:
    """Options of an endpoint. None leaves a limit out, or to the endpoint."""

    concurrency: Positive = 16
    """Maximum concurrent requests; fewer when the endpoint is overloaded."""
    deadline: Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)] = 120.0
    """Seconds for one request, including retries."""
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
    extra_body: Any = None
    """Further fields of requests, as a mapping or JSON."""

    @property
    def extra_fields(self) -> dict[str, Any]:
        return parse_extra_body(self.extra_body or "") or {}

    @property
    def limits(self) -> RateLimits:
        return RateLimits(self.concurrency, self.deadline, self.retries)


def check_options(given: dict[str, Any]) -> EndpointOptions:
    """Check the options, listing everything that is wrong with them in one error."""
    known = [one.name for one in fields(EndpointOptions)]
    wrong = [f"{name} is unknown" for name in given if name not in known]
    try:
        options = TypeAdapter(EndpointOptions).validate_python({name: given[name] for name in known if name in given})
    except ValidationError as error:
        wrong += [
            f"{each['loc'][0]} is {quote_short(each['input'])}: {each['msg'][:1].lower()}{each['msg'][1:]}"
            for each in error.errors(include_url=False)
        ]
    if given.get("extra_body") is not None and (problem := extra_body_problem(given["extra_body"])):
        wrong.append(f"extra_body {problem}")
    if wrong:
        raise ModelError("wrong options for an endpoint", more=tuple(wrong), expected=f"some of {', '.join(known)}")
    return options
