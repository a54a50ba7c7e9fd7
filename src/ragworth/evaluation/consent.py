"""Permissions that a user has given to workspaces.

A ``ragworth.toml`` may come from somebody else. It may send a server the key in a ``RAGWORTH_*`` variable, and the key
in a well-known variable if it belongs to that server, and no other. It may not send a server the text of files outside
of its folder. For anything else the user has to say so on the command line. That is remembered in the user's own
settings, for this file alone.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from ragworth.config import ModelSpec, Workspace
from ragworth.errors import MAX_PATH_LENGTH, FormatError, InputError, ModelError, quote_short
from ragworth.llm.openai.key_hosts import is_own_host
from ragworth.llm.openai.spec import ModelAddress, parse_address
from ragworth.storage.containment import is_inside
from ragworth.storage.private import open_part_file, private_folder
from ragworth.storage.user_folder import settings_folder

CONSENT_FILE = "allowed.json"
FORMAT = 1
LOCAL_BACKENDS = ("embedded", "gguf", "hf", "scripted")
"""Kinds of models that send nothing over a network."""

TRUST_HINT = "if you trust this file, add"


@dataclass(frozen=True)
class Consent:
    """The permissions that the user gives in a call or command.

    ``keys``: environment variables that may go to the servers for which the workspace names them. ``reads``: files and
    folders outside of the workspace whose texts may be sent to its servers.
    """

    keys: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()


class KeyGrant(NamedTuple):
    """A variable that the workspace at a path sends to a server."""

    variable: str
    server: str
    workspace: str


class ReadGrant(NamedTuple):
    """A file or folder that the workspace at a path may send to a server.

    Without a server it allows nothing: earlier versions remembered a path for all servers.
    """

    path: str
    workspace: str
    server: str = ""


@dataclass
class ConsentGuard:
    """Decides what a workspace may do: by the rules, and by the permissions that the user gives now or gave before.

    A workspace that was made in Python, without a file, is the user's own words: it may do everything.
    """

    space: Workspace
    consent: Consent = field(default_factory=Consent)
    new: set[KeyGrant | ReadGrant] = field(default_factory=set)
    """Permissions that are new."""

    def key(self, asked: ModelSpec) -> None:
        """Refuse a model that would send a key to a host it isn't for."""
        variable = asked.options.get("key_variable")
        if not self._foreign or not isinstance(variable, str) or variable.startswith("RAGWORTH_"):
            return
        address = endpoint_address(asked.use)
        if address is not None and is_own_host(variable, address.url):
            return
        wanted = KeyGrant(variable, server_address(asked.use), self._file)
        if variable in self.consent.keys:
            self.new.add(wanted)
        elif wanted not in _load_grants()[0]:
            raise InputError(
                f"key_variable names {quote_short(variable)}, whose value would be sent to {wanted.server}",
                expected="a RAGWORTH_* variable, or a well-known one for its own host, such as OPENAI_API_KEY for "
                "https://api.openai.com",
                remedy=f"{TRUST_HINT} --allow-key {shlex.quote(variable)} (remembered for this file and this server)",
            )

    def read(self, path: Path, servers: Sequence[str]) -> None:
        """Refuse a file outside the workspace if its text would go to a server without permission."""
        if not self._foreign or is_inside(path, self.space.folder):
            return
        real = path.resolve()
        given = [Path(each).expanduser().resolve() for each in self.consent.reads]
        if around := [each for each in given if real.is_relative_to(each)]:
            self.new |= {ReadGrant(str(each), self._file, server) for each in around for server in servers}
            return
        allowed = {
            each.server for each in _load_grants()[1] if each.workspace == self._file and is_inside(real, each.path)
        }
        if new := [server for server in servers if server not in allowed]:
            raise InputError(
                f"{quote_short(str(real), MAX_PATH_LENGTH)} is outside of the folder of the workspace, "
                f"and {' and '.join(new)} would be sent its text",
                remedy=f"{TRUST_HINT} --allow-read {shlex.quote(str(real))} (remembered for this file and this server)",
            )

    def remember(self) -> None:
        """Store new permissions."""
        if self.new:
            keys, reads = _load_grants()
            keys |= {each for each in self.new if isinstance(each, KeyGrant)}
            reads |= {each for each in self.new if isinstance(each, ReadGrant)}
            _save_grants(settings_folder() / CONSENT_FILE, keys, reads)
            self.new = set()

    @property
    def _foreign(self) -> bool:
        return bool(self.space.digest)

    @property
    def _file(self) -> str:
        return str(self.space.file.resolve())


def endpoint_address(spec: str) -> ModelAddress | None:
    """The address of an endpoint; None for other models and wrong addresses."""
    kind, _, rest = _innermost_model(spec)
    try:
        return parse_address(rest) if kind == "openai" else None
    except ModelError:
        return None


def server_address(spec: str) -> str:
    """The server that receives a model's prompts, for messages: scheme, host and port; empty for a local model."""
    address = endpoint_address(spec)
    if address is not None:
        return "/".join(address.url.split("/")[:3])
    kind = _innermost_model(spec)[0]
    return "" if kind in LOCAL_BACKENDS else f"the {kind} model"


def remote_server(asked: ModelSpec) -> str:
    """The server that receives a model's prompts; None for a local model."""
    address = endpoint_address(asked.use)
    if address is not None and address.is_private and not address.url.startswith("https:"):
        return ""  # loopback
    return server_address(asked.use)


def _innermost_model(spec: str) -> tuple[str, str, str]:
    kind, colon, rest = spec.partition(":")
    return _innermost_model(rest) if kind == "sampled" and rest else (kind, colon, rest)


def _load_grants() -> tuple[set[KeyGrant], set[ReadGrant]]:
    path = settings_folder() / CONSENT_FILE
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
        if said["format"] != FORMAT:
            raise ValueError(f"its format is {said['format']}")
        return set(_parse_grants(KeyGrant, said["keys"])), set(_parse_grants(ReadGrant, said["reads"]))
    except FileNotFoundError:
        return set(), set()
    except (OSError, ValueError, KeyError, TypeError) as error:
        remedy = "delete it, and allow again what is needed"
        raise FormatError(f"it cannot be read: {error}", file=str(path), remedy=remedy) from error


def _parse_grants(kind: Any, rows: list[dict[str, str]]) -> Iterator[Any]:
    for row in rows:
        if not all(isinstance(value, str) for value in row.values()):
            raise ValueError("it holds something that is no text")
        yield kind(**row)


def _save_grants(path: Path, keys: set[KeyGrant], reads: set[ReadGrant]) -> None:
    said = {
        "format": FORMAT,
        "keys": [each._asdict() for each in sorted(keys)],
        "reads": [each._asdict() for each in sorted(reads)],
    }
    try:
        private_folder(path.parent)
        part, stream = open_part_file(path, private=True)
        with stream:
            stream.write((json.dumps(said, ensure_ascii=False, indent=1) + "\n").encode("utf-8", "surrogateescape"))
        part.replace(path)
    except OSError as error:
        raise FormatError(
            f"what you allow cannot be remembered: {error.strerror or error}",
            file=str(path),
            remedy="name a folder that can be written to in RAGWORTH_CONFIG",
        ) from error
