"""``ragworth init``: write down as a ``ragworth.toml`` what was found in a folder, or a template."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from ragworth.core.errors import InputError
from ragworth.evaluation.trust_checks import ServerConsent, remote_host
from ragworth.formats.files import create_file
from ragworth.formats.logs.fields import quote_argument
from ragworth.init.templates import TEMPLATES
from ragworth.init.toml_writer import fill_template
from ragworth.workspace import config
from ragworth.workspace.config import WORKSPACE_FILE, ModelSpec
from ragworth.workspace.sources import inspect_folder
from ragworth.workspace.workspace_plan import WorkspacePlan


class InitResult(NamedTuple):
    """A file that was written, and what is in it."""

    file: Path
    plan: WorkspacePlan


def init_workspace(
    folder: str | Path = ".",
    template: str | None = None,
    *,
    model: str = "",
    columns: Mapping[str, str] | None = None,
    force: bool = False,
) -> InitResult:
    """Write the file of a workspace; with ``template``, without inspecting the folder.

    ``model`` is the model to ask; the file may name its server, because the user does. ``columns`` maps our names of
    fields to those of the logs. An existing file is overwritten only with ``force``, and only when the new one is
    complete.
    """
    folder = Path(folder)
    file = folder / WORKSPACE_FILE
    if folder.is_file():
        remedy = (
            f"ragworth init {quote_argument(str(folder.parent))}, or ragworth evaluate {quote_argument(str(folder))}"
        )
        raise InputError("this is a file, not a folder", file=str(folder), remedy=remedy)
    if not folder.is_dir():
        raise InputError("there is no such folder", file=str(folder), remedy="create it and put your files there")
    if os.path.lexists(file) and not force:
        raise InputError(
            "the file already exists", file=str(file), remedy="give --force to overwrite it, or change it by hand"
        )
    plan = inspect_folder(folder, columns) if template is None else _template_plan(template)
    if model:
        plan.tables.setdefault("", {})["model"] = model
    text = fill_template(plan.tables)
    with create_file(file) as stream:
        stream.write(text.encode())
    if host := remote_host(asked := ModelSpec(model)):
        consent = ServerConsent(config.read(file), [host])
        consent.check(asked)
        consent.remember()
    return InitResult(file, plan)


def _template_plan(name: str) -> WorkspacePlan:
    if name not in TEMPLATES:
        raise InputError(f"unknown template {name!r}", expected=f"one of {', '.join(TEMPLATES)}")
    return WorkspacePlan({table: dict(keys) for table, keys in TEMPLATES[name].items()})
