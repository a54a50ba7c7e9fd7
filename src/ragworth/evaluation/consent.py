"""What a user has allowed a workspace that no workspace may do on its own.

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

from ragworth.config import Asked, Workspace
from ragworth.errors import MOST_PATH, FormatError, InputError, ModelError, quoted
from ragworth.llm.openai.key_hosts import is_own_host
from ragworth.llm.openai.spec import Address, parse
from ragworth.storage.containment import is_inside
from ragworth.storage.private import open_beside, private_folder
from ragworth.storage.user_folder import settings_folder

FILE = "allowed.json"
FORMAT = 1
LOCAL = ("embedded", "gguf", "hf", "scripted")
"""Kinds of models that send nothing anywhere."""

TRUST = "if you trust this file, add"


@dataclass(frozen=True)
class Consent:
    """What the user allows, in their own words.

    ``keys``: environment variables that may go to the servers for which the workspace names them. ``reads``: files and
    folders outside of the workspace whose texts may be sent to its servers.
    """

    keys: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()


class Key(NamedTuple):
    """A variable that the workspace at a path sends to a server."""

    variable: str
    server: str
    workspace: str


class Read(NamedTuple):
    """A file or folder that the workspace at a path may send to a server.

    Without a server it allows nothing: earlier versions remembered a path for all servers.
    """

    path: str
    workspace: str
    server: str = ""


@dataclass
class Guard:
    """Says whether a workspace may do something, by the rules, by what the user says now, and by what they said before.

    A workspace that was made in Python, without a file, is the user's own words: it may do everything.
    """

    space: Workspace
    consent: Consent = field(default_factory=Consent)
    new: set[Key | Read] = field(default_factory=set)
    """What was allowed just now."""

    def key(self, asked: Asked) -> None:
        """Refuse a model that would send a key to somebody whom it does not belong to."""
        variable = asked.options.get("key_variable")
        if not self._foreign or not isinstance(variable, str) or variable.startswith("RAGWORTH_"):
            return
        address = address_of(asked.use)
        if address is not None and is_own_host(variable, address.url):
            return
        wanted = Key(variable, server_of(asked.use), self._file)
        if variable in self.consent.keys:
            self.new.add(wanted)
        elif wanted not in _remembered()[0]:
            raise InputError(
                f"key_variable names {quoted(variable)}, whose value would be sent to {wanted.server}",
                expected="a RAGWORTH_* variable, or a well-known one for its own host, such as OPENAI_API_KEY for "
                "https://api.openai.com",
                remedy=f"{TRUST} --allow-key {shlex.quote(variable)} (remembered for this file and this server)",
            )

    def read(self, path: Path, servers: Sequence[str]) -> None:
        """Refuse a file outside of the workspace, if a server would see its text that the user didn't allow it."""
        if not self._foreign or is_inside(path, self.space.folder):
            return
        real = path.resolve()
        given = [Path(each).expanduser().resolve() for each in self.consent.reads]
        if around := [each for each in given if real.is_relative_to(each)]:
            self.new |= {Read(str(each), self._file, server) for each in around for server in servers}
            return
        allowed = {
            each.server for each in _remembered()[1] if each.workspace == self._file and is_inside(real, each.path)
        }
        if new := [server for server in servers if server not in allowed]:
            raise InputError(
                f"{quoted(str(real), MOST_PATH)} is outside of the folder of the workspace, "
                f"and {' and '.join(new)} would be sent its text",
                remedy=f"{TRUST} --allow-read {shlex.quote(str(real))} (remembered for this file and this server)",
            )

    def remember(self) -> None:
        """Keep what was allowed just now."""
        if self.new:
            keys, reads = _remembered()
            keys |= {each for each in self.new if isinstance(each, Key)}
            reads |= {each for each in self.new if isinstance(each, Read)}
            _write(settings_folder() / FILE, keys, reads)
            self.new = set()

    @property
    def _foreign(self) -> bool:
        return bool(self.space.digest)

    @property
    def _file(self) -> str:
        return str(self.space.file.resolve())


def address_of(spec: str) -> Address | None:
    """Where a model is asked; None where it is not an endpoint, or its address is wrong."""
    kind, _, rest = _innermost(spec)
    try:
        return parse(rest) if kind == "openai" else None
    except ModelError:
        return None


def server_of(spec: str) -> str:
    """Who is sent what a model is asked, for messages: scheme, host and port. Nothing for a model on this machine."""
    address = address_of(spec)
    if address is not None:
        return "/".join(address.url.split("/")[:3])
    kind = _innermost(spec)[0]
    return "" if kind in LOCAL else f"the {kind} model"


def remote(asked: Asked) -> str:
    """The server that sees what a model is asked; nothing where that stays on this machine."""
    address = address_of(asked.use)
    if address is not None and address.is_private and not address.url.startswith("https:"):
        return ""  # loopback
    return server_of(asked.use)


def _innermost(spec: str) -> tuple[str, str, str]:
    kind, colon, rest = spec.partition(":")
    return _innermost(rest) if kind == "sampled" and rest else (kind, colon, rest)


def _remembered() -> tuple[set[Key], set[Read]]:
    path = settings_folder() / FILE
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
        if said["format"] != FORMAT:
            raise ValueError(f"its format is {said['format']}")
        return set(_rows(Key, said["keys"])), set(_rows(Read, said["reads"]))
    except FileNotFoundError:
        return set(), set()
    except (OSError, ValueError, KeyError, TypeError) as error:
        remedy = "delete it, and allow again what is needed"
        raise FormatError(f"it cannot be read: {error}", file=str(path), remedy=remedy) from error


def _rows(kind: Any, rows: list[dict[str, str]]) -> Iterator[Any]:
    for row in rows:
        if not all(isinstance(value, str) for value in row.values()):
            raise ValueError("it holds something that is no text")
        yield kind(**row)


def _write(path: Path, keys: set[Key], reads: set[Read]) -> None:
    said = {
        "format": FORMAT,
        "keys": [each._asdict() for each in sorted(keys)],
        "reads": [each._asdict() for each in sorted(reads)],
    }
    try:
        private_folder(path.parent)
        part, stream = open_beside(path, private=True)
        with stream:
            stream.write((json.dumps(said, ensure_ascii=False, indent=1) + "\n").encode("utf-8", "surrogateescape"))
        part.replace(path)
    except OSError as error:
        raise FormatError(
            f"what you allow cannot be remembered: {error.strerror or error}",
            file=str(path),
            remedy="name a folder that can be written to in RAGWORTH_CONFIG",
        ) from error
