"""Addresses of object stores on the command line: inputs are copied to this machine first, outputs uploaded after.

Only the command line may name an address; a workspace can't, because it may be somebody else's.
"""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import click

from ragworth.errors import InputError
from ragworth.storage.mirror import Mirror, upload_output
from ragworth.storage.remote import RemotePath

ADDRESS = re.compile(r"(?P<head>(?:--[\w-]+=)?(?:[^=/:]+=)?(?:[\w-]+:)?)(?P<url>(?:s3|gs|az)://.+)", re.DOTALL)
"""An address, after an option, the name of a run (``bm25=…``) or a format (``beir:…``)."""

OUTPUTS = ("-o", "--output", "--results", "--labels")
LOCAL_ONLY = ("--store", "--cache")
BY_THEMSELVES = ("plan", "run-shard", "merge")
"""Commands of ``calls`` that read and write addresses as they are."""


@dataclass
class RemoteArguments:
    """What the arguments of a command name in object stores."""

    mirrors: list[Mirror] = field(default_factory=list)
    outputs: list[tuple[Path, RemotePath]] = field(default_factory=list)

    def localise(self, arguments: list[str]) -> list[str]:
        """The arguments with paths on this machine in the place of addresses."""
        if arguments[:1] == ["calls"] and any(each in arguments[1:2] for each in BY_THEMSELVES):
            return arguments
        options = ["", *arguments]
        return [self._local(text, before) for before, text in zip(options, arguments, strict=False)]

    def _local(self, text: str, before: str) -> str:
        found = ADDRESS.fullmatch(text)
        if found is None:
            return text
        head, remote = found["head"], RemotePath(found["url"])
        option = head.partition("=")[0] if head.startswith("--") else before
        if option in LOCAL_ONLY:
            raise InputError(
                f"{option} is an address", expected="a path on this machine", remedy="share calls with `calls plan`"
            )
        if option in OUTPUTS:
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
        for mirror in self.mirrors:
            if number := mirror.send():
                click.echo(f"{number:,} new or changed files of {mirror.remote} uploaded", err=True)
