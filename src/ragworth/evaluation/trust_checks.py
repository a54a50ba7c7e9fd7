"""Whether a workspace stays within what it may do on its own, before anything is sent or written.

A ``ragworth.toml`` may come from somebody else. A server that it names gets texts and an API key, so it has to be on
this machine, or the user allows it for this file: ``--allow-server HOST``. That is remembered in the user's own
settings. A model that the user names, in a command or in Python, needs no permission.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from functools import partial
from glob import escape
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from ragworth.core.cache import settings_folder
from ragworth.core.errors import MAX_PATH_LENGTH, FormatError, InputError, MissingExtraError, ModelError, quote_short
from ragworth.core.files import is_inside, write_output
from ragworth.data.tokens import tokenizer_file
from ragworth.formats import FORMATS
from ragworth.llm import MODELS
from ragworth.retrieval import Pipeline
from ragworth.retrieval.pipeline import Step
from ragworth.workspace.config import ModelSpec, TaskConfig, Workspace
from ragworth.workspace.problems import Problems

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
        """Refuse a model on a server, or behind a proxy, that the file names and the user hasn't allowed."""
        if model.chosen or not self._foreign:
            return
        for host in remote_hosts(model):
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


def remote_hosts(model: ModelSpec) -> list[str]:
    """The hosts other than this machine that get a model's prompts: its server, and its proxy. A third-party backend
    stands for its host.
    """
    kind, _, rest = model.use.partition(":")
    if kind == "sampled":
        return remote_hosts(ModelSpec(rest, model.options))
    if kind != "openai":
        return [kind] if kind in MODELS and kind not in LOCAL_BACKENDS else []
    from ragworth.llm.openai.options import is_loopback, parse_address, proxy_host

    hosts = []
    if (proxy := proxy_host(str(model.options.get("proxy", "")))) and not is_loopback(proxy):
        hosts.append(proxy)
    with suppress(ModelError):  # opening it reports what is wrong
        if not (address := parse_address(rest)).is_loopback:
            hosts.append(address.host)
    # Letters of other alphabets may look like those of a known host.
    return [host.encode("ascii", "backslashreplace").decode() for host in hosts]


def _load_hosts() -> dict[str, list[str]]:
    path = settings_folder() / CONSENT_FILE
    try:
        return ALLOWED_HOSTS.validate_python(json.loads(path.read_bytes().decode("utf-8", "surrogateescape")))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        remedy = "delete it, and allow again what is needed"
        raise FormatError("it is not a list of allowed servers", file=str(path), remedy=remedy) from error


KeyPath = tuple[str, ...]
"""The keys that lead to a setting."""

PROMPT_SETTINGS = ("prompt", "alone")
"""Settings that name a prompt or its file."""


def check_trust(space: Workspace, consent: ServerConsent, problems: Problems) -> None:
    """Find servers that a workspace may not name, and files outside of its folder whose texts a server would get."""
    if not space.digest:
        return
    steps = list(_steps(space))
    models = list(_task_models(space))
    models += [(where, ModelSpec(model)) for where, step in steps for model in step.models() if model]
    for where, asked in models:
        problems.of(partial(consent.check, asked), *where)
    if not any(remote_hosts(asked) for _, asked in models):
        return
    for where, path in (*_collection_files(space), *_setting_files(space, steps)):
        if not is_inside(path, space.folder):
            problems.say(
                f"{quote_short(str(path.resolve()), MAX_PATH_LENGTH)} is outside of the folder of the workspace, "
                "which asks a server",
                "put the file into the folder, or ragworth.toml into a folder above it",
                *where,
            )


def _task_models(space: Workspace) -> Iterator[tuple[KeyPath, ModelSpec]]:
    """Every model that the tables of a workspace name."""
    yield ("model",), space.model
    for where, task in _tasks(space):
        if task.model is not None:
            yield (*where, "model"), task.model
        if task.expensive is not None and task.expensive.model is not None:
            yield (*where, "expensive", "model"), task.expensive.model


def _tasks(space: Workspace) -> Iterator[tuple[KeyPath, TaskConfig]]:
    yield from ((("judgments", kind), task) for kind, task in space.judgment_tasks.items())
    yield from ((("grades", kind), task) for kind, task in space.grades.items())
    if space.answers is not None:
        yield ("answers",), space.answers.task


def _steps(space: Workspace) -> Iterator[tuple[KeyPath, Step]]:
    """The steps of all systems, except those that are not written right: they are reported elsewhere."""
    for name, text in space.systems.items():
        with suppress(InputError, MissingExtraError):
            yield from ((("systems", name), step) for step in Pipeline.of(text).all_steps)


def _collection_files(space: Workspace) -> Iterator[tuple[KeyPath, Path]]:
    """Every file and folder with texts or values that the tables name."""
    texts = space.collection
    parts = {"from": texts.whole} | {
        name: getattr(texts, name) for name in ("queries", "passages", "answers", "subquestions", "ratings")
    }
    named: list[tuple[KeyPath, str]] = [(("collection", name), text) for name, text in parts.items() if text]
    named += [(("collection", "qrels"), text) for text in texts.qrels]
    named += [(("judgments", "files"), text) for text in space.judged]
    named += [(("grades", "files"), text) for text in space.graded]
    if space.answers is not None and space.answers.file:
        named.append((("answers", "file"), space.answers.file))
    for where, task in _tasks(space):
        if task.expensive is not None and task.expensive.file:
            named.append(((*where, "expensive", "file"), task.expensive.file))
    if file := tokenizer_file(space.tokens):
        yield ("collection", "tokens"), file
    for where, text in named:
        yield from ((where, each) for each in _workspace_files(space, text))


def _setting_files(space: Workspace, steps: list[tuple[KeyPath, Step]]) -> Iterator[tuple[KeyPath, Path]]:
    """The user's prompts, and every file that a setting of a task or of a pipeline's step names."""
    if space.prompts:
        yield from ((("paths", "prompts"), each) for each in _with_links(space.path(space.prompts)))
    named: list[tuple[KeyPath, Mapping[str, Any]]] = [(where, task.settings) for where, task in _tasks(space)]
    named += [
        ((*where, "expensive"), task.expensive.settings) for where, task in _tasks(space) if task.expensive is not None
    ]
    named += [
        (
            where,
            {each.name: getattr(step, each.name) for each in fields(step) if getattr(step, each.name) != each.default},
        )
        for where, step in steps
    ]
    for where, settings in named:
        for name, text in settings.items():
            if isinstance(text, str) and text:
                files = _prompt_files(space, text) if name in PROMPT_SETTINGS else _workspace_files(space, text)
                with suppress(OSError):  # a text that is too long for a path
                    yield from ((where, path) for path in files if path.is_file())


def _prompt_files(space: Workspace, text: str) -> Iterator[Path]:
    """The file of a prompt and its variant ``NAME-alone``, wherever they may be looked for."""
    own = [space.path(space.prompts) / f"{text}.txt"] if space.prompts else []
    for path in (*own, space.path(text), Path(text)):
        if path.is_file():
            yield from (path, *path.parent.glob(f"{escape(path.stem)}-*"))


def _workspace_files(space: Workspace, text: str) -> Iterator[Path]:
    """A file that a workspace names, maybe with its format in front; of a folder, the folder and all links in it."""
    spec = space.spec(text)
    form, colon, rest = spec.partition(":")
    if form != "ir_datasets":
        # Readers take a format in front off even where there is a file of the whole name, so both may be read.
        known = bool(colon) and form in FORMATS
        for path in ([Path(rest)] if known else []) + ([Path(spec)] if not known or Path(spec).exists() else []):
            yield from _with_links(path)


def _with_links(path: Path) -> Iterator[Path]:
    yield path
    if path.is_dir():
        yield from (each for each in path.rglob("*") if each.is_symlink())
