"""Folders on this machine or in an object store, for what is written once and read whole."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ragworth.errors import InputError
from ragworth.storage.output import write_output
from ragworth.storage.remote import RemotePath, is_url

Place = Path | RemotePath


def to_place(text: str | Path | RemotePath) -> Place:
    if isinstance(text, RemotePath):
        return text
    return RemotePath(text) if isinstance(text, str) and is_url(text) else Path(text)


def write_whole(place: Place, data: bytes) -> None:
    """Write a file that is there whole or not at all, in a folder that is made if it is missing."""
    if isinstance(place, RemotePath):
        with _input_errors():
            place.write_bytes(data)
        return
    write_output(place, data, durable=True)


def files_in(folder: Place, pattern: str = "*") -> list[Place]:
    """The files directly in a folder, by name; none if there is no such folder."""
    if isinstance(folder, RemotePath):
        with _input_errors():
            return [folder / one.name for one in folder.files(pattern) if "/" not in one.name]
    return [path for path in sorted(folder.glob(pattern)) if path.is_file()] if folder.is_dir() else []


def is_empty(folder: Place) -> bool:
    """Whether there is nothing in a folder, or no such folder."""
    if isinstance(folder, RemotePath):
        with _input_errors():
            return not folder.files()
    return not folder.exists() or not any(folder.iterdir())


@contextmanager
def _input_errors() -> Iterator[None]:
    """Say what is wrong with an address, or with the connection to it."""
    try:
        yield
    except OSError as error:
        raise InputError(str(error), remedy="check the address and the credentials in the environment") from error
