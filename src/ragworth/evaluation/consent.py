"""Servers that a user lets a workspace name.

A ``ragworth.toml`` may come from somebody else. A server that it names gets texts and an API key, so it has to be on
this machine, or the user allows it for this file: ``--allow-server HOST``. That is remembered in the user's own
settings. A model that the user names, in a command or in Python, needs no permission.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence

from pydantic import TypeAdapter

from ragworth.core.errors import FormatError, InputError, ModelError
from ragworth.core.output import write_output
from ragworth.core.user_folder import settings_folder
from ragworth.llm import MODELS
from ragworth.llm.openai.spec import parse_address
from ragworth.workspace.config import ModelSpec, Workspace

CONSENT_FILE = "allowed.json"
"""Allowed hosts, by the path of the ``ragworth.toml`` that names them."""

ALLOWED_HOSTS = TypeAdapter(dict[str, list[str]])
LOCAL_BACKENDS = ("embedded", "gguf", "hf", "scripted", "vllm")
"""Kinds of models that send nothing over a network."""


class ServerConsent:
    """The servers that a workspace may name: those allowed before, and those that the user allows now.

    A workspace without a file was made by the user, who names its servers.
    """

    def __init__(self, space: Workspace, allowed: Sequence[str] = ()) -> None:
        self._foreign = bool(space.digest)
        self._file = str(space.file.resolve())
        self._allowed = {host.casefold() for host in allowed}
        self._new: set[str] = set()

    def check(self, model: ModelSpec) -> None:
        """Refuse a model on a server that the file names and the user hasn't allowed."""
        host = remote_host(model)
        if not host or model.chosen or not self._foreign:
            return
        if host in self._allowed:
            self._new.add(host)
        elif host not in _load_hosts().get(self._file, []):
            key = model.options.get("key_variable")
            raise InputError(
                f"{host} would be sent texts and {f'the key in {key}' if key else 'your API key'}",
                remedy=f"if you trust this file, add --allow-server {shlex.quote(host)} (remembered for this file)",
            )

    def remember(self) -> None:
        """Store new permissions."""
        if not self._new:
            return
        hosts = _load_hosts()
        hosts[self._file] = sorted({*hosts.get(self._file, []), *self._new})
        path = settings_folder() / CONSENT_FILE
        text = json.dumps(hosts, ensure_ascii=False, indent=1, sort_keys=True) + "\n"
        write_output(path, text.encode("utf-8", "surrogateescape"))
        self._new = set()


def remote_host(model: ModelSpec) -> str:
    """The host that gets a model's prompts; empty for this machine. A third-party backend stands for its host."""
    kind, _, rest = model.use.partition(":")
    if kind == "sampled":
        return remote_host(ModelSpec(rest))
    if kind != "openai":
        return kind if kind in MODELS and kind not in LOCAL_BACKENDS else ""
    try:
        address = parse_address(rest)
    except ModelError:
        return ""  # opening it reports what is wrong
    # Letters of other alphabets may look like those of a known host.
    return "" if address.is_loopback else address.host.encode("ascii", "backslashreplace").decode()


def _load_hosts() -> dict[str, list[str]]:
    path = settings_folder() / CONSENT_FILE
    try:
        return ALLOWED_HOSTS.validate_python(json.loads(path.read_bytes().decode("utf-8", "surrogateescape")))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        remedy = "delete it, and allow again what is needed"
        raise FormatError("it is not a list of allowed servers", file=str(path), remedy=remedy) from error
