"""A group of commands, one for each entry of a registry, made when it is asked for."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

import click


class RegistryGroup(click.Group):
    """Commands by the names of a registry; ``maker`` makes the command of a name. Both are ``"module:object"``."""

    def __init__(self, *given: Any, registry: str, maker: str, **more: Any) -> None:
        super().__init__(*given, **more)
        self._names, self._maker = registry, maker

    @property
    def _registry(self) -> Any:
        return _object(self._names)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._registry.names())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        if cmd_name not in self._registry:
            raise self._registry.unknown(cmd_name)
        made: click.Command = _object(self._maker)(cmd_name)
        return made


def _object(target: str) -> Any:
    module, _, name = target.partition(":")
    return getattr(importlib.import_module(module), name)


def help_text(chosen: Any, last: str) -> str:
    """The words of a kind's docstring, as help, with a last line."""
    return f"{(inspect.getdoc(chosen) or chosen.title).replace('``', '')}\n\n{last}"


def kind_title(chosen: Any) -> str:
    """What a kind is, as a sentence."""
    return f"{chosen.title[0].upper()}{chosen.title[1:]}."
