"""Addresses of object stores on the command line: inputs are copied to this machine first, outputs uploaded after.

Only the command line may name an address; a workspace can't, because it may be somebody else's.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import click

from ragworth.errors import InputError
from ragworth.storage.mirror import Mirror, upload_output
from ragworth.storage.remote import RemotePath

ADDRESS = re.compile(r"(?P<head>(?:--[\w-]+=|-\w)?(?:[^=/:]+=)?(?:[\w-]+:)?)(?P<url>(?:s3|gs|az)://.+)", re.DOTALL)
"""An address, after an option, the name of a run (``bm25=…``) or a format (``beir:…``)."""

OUTPUTS = ("-o", "--output", "--results", "--each", "--pairs-output", "--rows", "--dropped")
OUTPUTS_OF = {"answer": ("--contexts",), "chunk": ("--labels",), "build": ("--outcomes",)}
"""Options that name outputs of some commands, and inputs of others."""
LOCAL_ONLY = ("-s", "--store", "--cache")
STORE = ".sqlite"


@dataclass
class RemoteArguments:
    """What the arguments of a command name in object stores."""

    mirrors: list[Mirror] = field(default_factory=list)
    outputs: list[tuple[Path, RemotePath]] = field(default_factory=list)

    def localise(self, arguments: list[str]) -> list[str]:
        """The arguments with paths on this machine in the place of addresses."""
        outputs = (*OUTPUTS, *OUTPUTS_OF.get(arguments[0], ()))
        return [self._local(text, before, outputs) for before, text in zip(["", *arguments], arguments, strict=False)]

    def _local(self, text: str, before: str, outputs: Sequence[str]) -> str:
        found = ADDRESS.fullmatch(text)
        if found is None:
            return text
        head, remote = found["head"], RemotePath(found["url"])
        option = head[:2] if re.match(r"-\w", head) else head.partition("=")[0] if head.startswith("--") else before
        if option in LOCAL_ONLY or remote.name.endswith(STORE):
            raise InputError(
                f"{option if option in LOCAL_ONLY else 'the store'} is an address",
                expected="a path on this machine",
                remedy="add the calls of another machine with `calls merge`",
            )
        if option in outputs:
            place = Path(tempfile.mkdtemp(prefix="ragworth-output-")) / remote.name
            self.outputs.append((place, remote))
            return f"{head}{place}"
        mirror = Mirror(remote)
        self.mirrors.append(mirror)
        return f"{head}{mirror.fetch()}"

    def finish(self) -> None:
        """Upload what the command wrote."""
        for path, remote in self.outputs:
            if path.exists():
                click.echo(upload_output(path, remote), err=True)
            shutil.rmtree(path.parent)
        for mirror in self.mirrors:
            if number := mirror.send():
                click.echo(f"{number:,} new or changed files of {mirror.remote} uploaded", err=True)
