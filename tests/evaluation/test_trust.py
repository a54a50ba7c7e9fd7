"""A workspace from somebody else: what it may send, read, write and delete, and what only its user can allow."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from ragworth import config, evaluate
from ragworth.cli import main
from ragworth.config import ModelSpec, Workspace
from ragworth.errors import FormatError, InputError
from ragworth.evaluation.consent import CONSENT_FILE, Consent, ConsentGuard
from ragworth.evaluation.plan import plan_evaluation
from ragworth.storage.file_record import RECORD_NAME
from tests.evaluation.samples import TOML, Models, change, run, workspace
from tests.llm.openai.endpoint import Endpoint

SECRET = "aws-5ecr3t-0123456789abcdef"
PROMPT = "[user]\n{{query}}{{#passages}}{{text*}}{{/passages}}"
ELSEWHERE = "https://llm.example/v1"


@pytest.fixture(autouse=True)
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's settings, of this test alone."""
    monkeypatch.setenv("RAGWORTH_CONFIG", str(tmp_path / "settings"))
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    return tmp_path / "settings" / CONSENT_FILE


def refused(folder: Path, consent: Consent | None = None) -> str:
    with pytest.raises(InputError) as error:
        plan_evaluation(config.read(folder), consent=consent)
    return str(error.value)


def model(url: str, variable: str = "AWS_SECRET_ACCESS_KEY", form: str = "openai") -> str:
    return f'{{use = "{form}:toy@{url}", key_variable = "{variable}"}}'


# ── keys ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("k = 2", "k = 2\nmodel = {}", 4),
        ("abstention = true", "abstention = {{model = {}}}", 16),
        ("abstention = true", "abstention = {{expensive = {{model = {}, sample = 2}}}}", 16),
        ("length = 8", "model = {}", 19),
        ("judge = true", "judge = {{model = {}}}", 23),
    ],
)
@pytest.mark.parametrize("form", ["openai", "sampled:openai", "sampled:sampled:openai"])
def test_no_table_sends_a_foreign_key(tmp_path: Path, old: str, new: str, line: int, form: str) -> None:
    folder = workspace(tmp_path / "w", TOML.replace(old, new.format(model(ELSEWHERE, form=form))))
    found = refused(folder)
    assert f"ragworth.toml, line {line}: key_variable names 'AWS_SECRET_ACCESS_KEY'" in found
    assert "would be sent to https://llm.example\n" in found
    assert "--allow-key AWS_SECRET_ACCESS_KEY" in found
    assert SECRET not in found


def test_a_key_goes_nowhere_without_consent_and_where_it_was_allowed_with_it(tmp_path: Path, settings: Path) -> None:
    pytest.importorskip("httpx")
    with Endpoint(key=SECRET) as server, Endpoint(key=SECRET) as other:
        toml = TOML.replace("k = 2", f"k = 2\nlimit = 1\nmodel = {model(server.url)}")
        folder, stranger = workspace(tmp_path / "w", toml), workspace(tmp_path / "x", toml)
        with pytest.raises(InputError, match="--allow-key"):
            evaluate(folder, until="annotate")
        with pytest.raises(InputError, match="--allow-key"):
            evaluate(folder, until="annotate", consent=Consent(keys=("AWS_ACCESS_KEY_ID",)))
        assert server.seen == []
        assert not settings.exists()
        evaluate(folder, until="annotate", consent=Consent(keys=("AWS_SECRET_ACCESS_KEY",)))
        assert all(SECRET in seen.headers["authorization"] for seen in server.asked())
        before = len(server.seen)
        evaluate(folder, until="answer")  # it is remembered
        assert len(server.seen) > before
        # For this file and this server alone.
        assert "--allow-key" in refused(stranger)
        change(folder, server.url, other.url)
        assert "--allow-key" in refused(folder)
        assert other.seen == []
    kept = json.loads(settings.read_text())
    assert [each["workspace"] for each in kept["keys"]] == [str((folder / "ragworth.toml").resolve())]
    assert SECRET not in settings.read_text()
    if os.name == "posix":
        assert (settings.stat().st_mode & 0o777, settings.parent.stat().st_mode & 0o777) == (0o600, 0o700)


@pytest.mark.parametrize(
    ("variable", "url", "allowed"),
    [
        ("RAGWORTH_OURS", ELSEWHERE, True),
        ("GROQ_API_KEY", "https://api.groq.com/openai/v1", True),
        ("GROQ_API_KEY", ELSEWHERE, False),
        ("OPENAI_API_KEY", "http://localhost:8000", False),
        ("ragworth_OURS", ELSEWHERE, False),
        ("XRAGWORTH_OURS", ELSEWHERE, False),
    ],
)
def test_keys_of_ones_own(tmp_path: Path, variable: str, url: str, allowed: bool) -> None:
    space = config.read(workspace(tmp_path / "w"))
    asked = ModelSpec(f"openai:toy@{url}", {"key_variable": variable})
    if allowed:
        ConsentGuard(space).key(asked)
        return
    with pytest.raises(InputError, match="--allow-key"):
        ConsentGuard(space).key(asked)
    ConsentGuard(Workspace(tmp_path / "w" / "ragworth.toml")).key(asked)  # made in Python: the user's own words


@pytest.mark.parametrize("text", ["{", "[]", '{"format": 2}', '{"format": 1, "keys": [{"variable": 7}], "reads": []}'])
def test_settings_that_cannot_be_read_allow_nothing(tmp_path: Path, settings: Path, text: str) -> None:
    folder = workspace(tmp_path / "w", TOML.replace("k = 2", f"k = 2\nmodel = {model(ELSEWHERE)}"))
    settings.parent.mkdir()
    settings.write_text(text)
    with pytest.raises(FormatError, match=r"allowed\.json: it cannot be read"):
        plan_evaluation(config.read(folder))


# ── files outside ─────────────────────────────────────────────────────────────────────────────────────────────────────


def outside(tmp_path: Path, what: str) -> tuple[Path, Path]:
    """A workspace that reads something outside of its folder, and what it reads."""
    folder, beyond = workspace(tmp_path / "w"), tmp_path / "beyond"
    beyond.mkdir()
    if what == "passages":
        (folder / "passages.jsonl").rename(beyond / "passages.jsonl")
        change(folder, '"passages.jsonl"', f'"{beyond / "passages.jsonl"}"')
        return folder, beyond / "passages.jsonl"
    if what == "link":
        (folder / "passages.jsonl").rename(beyond / "secret")
        (folder / "passages.jsonl").symlink_to(beyond / "secret")
        return folder, beyond / "secret"
    if what == "run":
        run(beyond / "first.run", {"q1": ["p1"]})
        change(folder, '{run = "first.run"}', "'run(\"../beyond/first.run\") % 2'")
        return folder, beyond / "first.run"
    if what == "prompts":
        change(folder, "[metrics]", '[paths]\nprompts = "../beyond"\n[metrics]')
        return folder, beyond
    if what == "prompt in a folder":
        (folder / "mine").mkdir()
        (beyond / "secret.txt").write_text(PROMPT)
        (folder / "mine" / "answer.txt").symlink_to(beyond / "secret.txt")
        change(folder, "[metrics]", '[paths]\nprompts = "mine"\n[metrics]')
        return folder, beyond / "secret.txt"
    assert what == "prompt"
    (beyond / "secret.txt").write_text(PROMPT)
    change(folder, "length = 8", 'length = 8\nprompt = "../beyond/secret.txt"')
    return folder, beyond / "secret.txt"


@pytest.mark.parametrize("what", ["passages", "link", "run", "prompts", "prompt in a folder", "prompt"])
@pytest.mark.parametrize("who", ["model", "judge", "step"])
def test_texts_from_outside_are_not_sent_to_a_server_without_consent(
    tmp_path: Path, what: str, who: str, settings: Path, models: Models
) -> None:
    folder, file = outside(tmp_path, what)
    if who == "model":
        change(folder, "k = 2", f'k = 2\nmodel = "openai:toy@{ELSEWHERE}"')
    elif who == "judge":
        change(folder, "judge = true", f'judge = {{model = "sampled:openai:toy@{ELSEWHERE}"}}')
    else:
        step = f'pointwise(model="openai:toy@{ELSEWHERE}")'
        change(folder, "[judgments]", f"third = 'run(\"second.run\") >> {step}'\n[judgments]")
    found = refused(folder)
    assert "ragworth.toml, line " in found
    assert f"'{file.resolve()}' is outside of the folder of the workspace, and https://llm.example would be" in found
    assert f"--allow-read {file.resolve()}" in found
    assert not settings.exists()
    (tmp_path / "elsewhere").mkdir()
    assert "--allow-read" in refused(folder, Consent(reads=(str(tmp_path / "elsewhere"),)))
    if who != "step":  # whose plan would ask the server what it can do
        plan_evaluation(config.read(folder), consent=Consent(reads=(str(tmp_path / "beyond"),)))
        plan_evaluation(config.read(folder))
        assert [each["path"] for each in json.loads(settings.read_text())["reads"]] == [str(tmp_path / "beyond")]


def test_texts_allowed_for_one_server_are_not_sent_to_another(tmp_path: Path, settings: Path, models: Models) -> None:
    folder, file = outside(tmp_path, "passages")
    change(folder, "k = 2", f'k = 2\nmodel = "openai:toy@{ELSEWHERE}"')
    allowed = Consent(reads=(str(file),))
    plan_evaluation(config.read(folder), consent=allowed)
    plan_evaluation(config.read(folder))
    change(folder, f"openai:toy@{ELSEWHERE}", "openai:toy@https://other.example/v1")
    assert "and https://other.example would be sent its text" in refused(folder)
    plan_evaluation(config.read(folder), consent=allowed)
    plan_evaluation(config.read(folder))
    servers = {each["server"] for each in json.loads(settings.read_text())["reads"]}
    assert servers == {"https://llm.example", "https://other.example"}


def test_a_path_remembered_without_a_server_is_asked_for_again(tmp_path: Path, settings: Path, models: Models) -> None:
    folder, file = outside(tmp_path, "passages")
    change(folder, "k = 2", f'k = 2\nmodel = "openai:toy@{ELSEWHERE}"')
    old = {"path": str(file), "workspace": str((folder / "ragworth.toml").resolve())}
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text(json.dumps({"format": 1, "keys": [], "reads": [old]}))
    assert "and https://llm.example would be sent its text" in refused(folder)


def test_a_file_with_a_format_in_its_name_hides_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, file = outside(tmp_path, "run")
    change(folder, "../beyond/first.run", f"trec:{file}")
    change(folder, "k = 2", f'k = 2\nmodel = "openai:toy@{ELSEWHERE}"')
    decoy = folder / f"trec:{file}"
    decoy.parent.mkdir(parents=True)
    decoy.write_bytes(file.read_bytes())
    monkeypatch.chdir(folder)
    assert f"--allow-read {file.resolve()}" in refused(folder)


@pytest.mark.parametrize("use", ["embedded", "openai:toy@http://localhost:8000", "openai:toy@http://127.0.0.1:8000"])
def test_on_this_machine_files_may_be_anywhere(tmp_path: Path, use: str, models: Models) -> None:
    folder, _ = outside(tmp_path, "passages")
    change(folder, "k = 2", f'k = 2\nmodel = "{use}"')
    assert plan_evaluation(config.read(folder)).stages


# ── places to write to ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["results", "store", "cache"])
@pytest.mark.parametrize("place", ["../x", "/tmp/ragworth-never", "a/../../x", "link/x", "link"])
def test_a_workspace_writes_in_its_folder_only(tmp_path: Path, name: str, place: str, models: Models) -> None:
    (tmp_path / "beyond").mkdir()
    folder = workspace(tmp_path / "w", f'{TOML}\n[paths]\n{name} = "{place}"\n')
    (folder / "link").symlink_to(tmp_path / "beyond")
    with pytest.raises(InputError) as error:
        evaluate(folder)
    assert f"ragworth.toml, line 29: paths.{name}: " in str(error.value)
    target = (folder / place).resolve()
    assert "outside of the folder of the workspace" in str(error.value)
    assert str(error.value).endswith(f"to write there, add --{name} {target}")
    assert not list((tmp_path / "beyond").iterdir())
    assert models.taken() == []


@pytest.mark.parametrize(
    "link", ["results", ".ragworth", "results/said", ".ragworth/stages", "calls.sqlite", "calls.sqlite-wal"]
)
def test_links_that_lead_outside_are_noticed_where_nothing_is_named(tmp_path: Path, link: str, models: Models) -> None:
    folder, beyond = workspace(tmp_path / "w"), tmp_path / "beyond"
    beyond.mkdir()
    (folder / link).parent.mkdir(exist_ok=True)
    (folder / link).symlink_to(beyond)
    with pytest.raises(InputError, match=r"leads outside of the folder .*, to .*beyond'; to write there, add --"):
        evaluate(folder)
    assert not list(beyond.iterdir())


def test_a_home_in_a_path_is_only_a_name(tmp_path: Path, models: Models, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    folder = workspace(tmp_path / "w", TOML + '\n[paths]\nstore = "~/calls.sqlite"\n')
    monkeypatch.chdir(folder)
    evaluate(".", until="annotate")
    assert (folder / "~" / "calls.sqlite").is_file()
    assert not (tmp_path / "home").exists()


@pytest.mark.slow
def test_the_command_line_may_write_anywhere(tmp_path: Path, models: Models, undrawn: list[object]) -> None:
    folder = workspace(tmp_path / "w", TOML + '\n[paths]\nresults = "../x"\n')
    told = CliRunner().invoke(main, ["evaluate", str(folder)])
    assert (told.exit_code, "--results" in told.output) == (2, True)
    options = ["--results", str(tmp_path / "r"), "--store", str(tmp_path / "s.sqlite"), "--cache", str(tmp_path / "c")]
    for command in (["check", str(folder)], ["evaluate", str(folder), "--dry-run"], ["evaluate", str(folder)]):
        told = CliRunner().invoke(main, [*command, *options])
        assert told.exit_code == 0, told.output
    assert (tmp_path / "r" / "manifest.json").is_file()
    assert (tmp_path / "s.sqlite").is_file()
    assert (tmp_path / "c" / "stages").is_dir()
    assert not any((folder / name).exists() for name in ("results", "calls.sqlite", ".ragworth"))
    assert not (tmp_path / "x").exists()


# ── files of somebody else's ──────────────────────────────────────────────────────────────────────────────────────────


def test_a_cache_among_other_files_is_refused(tmp_path: Path, models: Models) -> None:
    folder = workspace(tmp_path / "w", TOML + '\n[paths]\ncache = "."\n')
    (folder / "mine.blocks").mkdir()
    os.utime(folder / "mine.blocks", (0, 0))
    assert "this folder is not a cache: it contains other files" in refused(folder)
    assert (folder / "mine.blocks").is_dir()


def test_files_in_the_way_are_found_before_models_are_asked(tmp_path: Path, models: Models) -> None:
    folder = workspace(tmp_path / "w", TOML + '\n[paths]\nresults = "."\n')
    (folder / "answers.parquet").write_text("mine")
    (folder / "texts").mkdir()
    (folder / "texts" / "queries.parquet").write_text("mine")
    with pytest.raises(InputError) as error:
        evaluate(folder)
    assert "2 files in the way: ragworth did not write them" in str(error.value)
    assert "  answers.parquet\n  texts/queries.parquet\n" in str(error.value)
    assert "--results DIR" in str(error.value)
    assert models.taken() == []
    assert (folder / "answers.parquet").read_text() == "mine"


@pytest.mark.slow
def test_files_beside_results_survive_and_a_changed_one_is_not_replaced(
    tmp_path: Path, models: Models, undrawn: list[object]
) -> None:
    folder = workspace(tmp_path / "w")
    results = folder / "results"
    evaluate(folder)
    (results / "said" / "mine.parquet").write_text("mine")
    (results / "ratings.parquet").write_text("mine")
    (results / "notes.txt").write_text("mine")
    assert "1 file in the way" in refused(folder)  # ratings.parquet may be written, though not by this evaluation
    (results / "ratings.parquet").unlink()
    change(folder, "judge = true\n", "")
    evaluate(folder)
    assert not (results / "said" / "judge.parquet").exists()
    assert [(results / name).read_text() for name in ("said/mine.parquet", "notes.txt")] == ["mine", "mine"]
    (results / "report.html").write_text("with remarks of mine")
    assert "report.html" in refused(folder)
    assert (results / "report.html").read_text() == "with remarks of mine"


@pytest.mark.slow
def test_results_of_a_version_without_a_record_are_replaced(
    tmp_path: Path, models: Models, undrawn: list[object]
) -> None:
    folder = workspace(tmp_path / "w")
    results = folder / "results"
    evaluate(folder)
    (results / RECORD_NAME).unlink()
    (folder / ".ragworth" / "CACHEDIR.TAG").unlink()
    said = {path.name for path in (results / "said").iterdir()}
    (results / "said" / "mine.parquet").write_text("mine")
    change(folder, "judge = true\n", "")
    evaluate(folder)
    assert {path.name for path in (results / "said").iterdir()} == (said - {"judge.parquet"}) | {"mine.parquet"}
    (results / RECORD_NAME).unlink()
    (results / "manifest.json").write_text('{"name": "a program", "icons": []}')
    assert "manifest.json" in refused(folder)


@pytest.mark.skipif(os.name != "posix", reason="modes mean nothing here")
def test_everything_that_is_written_is_private(tmp_path: Path, models: Models, undrawn: list[object]) -> None:
    folder = workspace(tmp_path / "w")
    before = set(folder.rglob("*"))
    mask = os.umask(0o022)
    try:
        evaluate(folder)
    finally:
        os.umask(mask)
    made = [path for path in folder.rglob("*") if path not in before]
    names = {path.name for path in made}
    assert {"results", "manifest.json", ".ragworth", "calls.sqlite", "facts.json", "evaluating.lock"} <= names
    loose = {str(path.relative_to(folder)): oct(path.stat().st_mode) for path in made if path.stat().st_mode & 0o077}
    assert loose == {}
