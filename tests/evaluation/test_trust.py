"""A workspace from somebody else: what it may send, read, write and delete, and what only its user can allow."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from ragworth import evaluate
from ragworth.cli import main
from ragworth.core.errors import FormatError, InputError
from ragworth.evaluation.plan import plan_evaluation
from ragworth.evaluation.trust_checks import CONSENT_FILE, remote_hosts
from ragworth.llm.openai.options import ModelAddress
from ragworth.workspace import config
from ragworth.workspace.config import ModelSpec
from tests.evaluation.samples import TOML, Models, change, lines, run, workspace
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


def refused(folder: Path, *allow_servers: str) -> str:
    with pytest.raises(InputError) as error:
        plan_evaluation(config.read(folder), allow_servers=allow_servers)
    return str(error.value)


def model(url: str, variable: str = "AWS_SECRET_ACCESS_KEY", form: str = "openai") -> str:
    return f'{{use = "{form}:toy@{url}", key_variable = "{variable}"}}'


def with_server(folder: Path, url: str = ELSEWHERE) -> Path:
    change(folder, "k = 2", f'k = 2\nlimit = 1\nmodel = "openai:toy@{url}"')
    return folder


# ── servers ───────────────────────────────────────────────────────────────────────────────────────────────────────────


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
@pytest.mark.parametrize("form", ["openai", "sampled:sampled:openai"])
def test_no_table_names_a_server_without_consent(tmp_path: Path, old: str, new: str, line: int, form: str) -> None:
    folder = workspace(tmp_path / "w", TOML.replace(old, new.format(model(ELSEWHERE, form=form))))
    found = refused(folder)
    assert f"ragworth.toml, line {line}: llm.example would be sent texts and the key in AWS_SECRET_ACCESS_KEY" in found
    assert "--allow-server llm.example" in found
    assert SECRET not in found


@pytest.mark.parametrize(
    "command", [["check"], ["evaluate"], ["evaluate", "--dry-run"], ["study", "top-k"], ["study", "top-k", "--dry-run"]]
)
def test_ragworths_own_key_goes_nowhere_without_consent(tmp_path: Path, command: list[str]) -> None:
    folder = with_server(workspace(tmp_path / "w"), "http://llm.example:8000")
    said = CliRunner().invoke(main, [*command, str(folder)], env={"RAGWORTH_API_KEY": SECRET})
    assert (said.exit_code, "--allow-server" in said.output) == (2, True), said.output


@pytest.mark.parametrize("command", [["check"], ["evaluate", "--dry-run"], ["evaluate"]])
def test_a_server_is_refused_until_it_is_allowed_and_again_once_it_changes(
    tmp_path: Path, settings: Path, command: list[str]
) -> None:
    def said(*arguments: str) -> tuple[int, str]:
        done = CliRunner().invoke(main, [*arguments, str(folder)], env={"RAGWORTH_API_KEY": SECRET})
        assert SECRET not in done.output
        return done.exit_code, done.output

    folder = with_server(workspace(tmp_path / "w"))
    code, words = said(*command)
    assert code == 2
    assert "llm.example would be sent texts and your API key\n  to do: if you trust this file, add" in words
    assert "--allow-server llm.example (remembered for this file)" in words
    code, words = said(*command, "--allow-server", "other.example")
    assert (code, "add --allow-server llm.example" in words) == (2, True)
    assert said("check", "--allow-server", "llm.example")[0] == 0
    assert said("check")[0] == 0, "it is remembered"
    assert json.loads(settings.read_text()) == {str((folder / "ragworth.toml").resolve()): ["llm.example"]}
    assert not settings.is_relative_to(folder)
    change(folder, "llm.example", "new.llm.example")
    code, words = said(*command)
    assert (code, "add --allow-server new.llm.example" in words) == (2, True)


def test_a_workspace_that_the_user_writes_may_name_the_server_that_the_user_named(
    tmp_path: Path, settings: Path
) -> None:
    log = {"question": "Who built it?", "contexts": ["Ann built it."], "response": "Ann", "reference": "Ann"}
    (tmp_path / "w").mkdir()
    lines(tmp_path / "w" / "log.jsonl", [log])
    made = CliRunner().invoke(main, ["init", str(tmp_path / "w"), "--model", f"openai:toy@{ELSEWHERE}"])
    assert made.exit_code == 0, made.output
    assert config.read(tmp_path / "w").model == ModelSpec(f"openai:toy@{ELSEWHERE}")
    assert plan_evaluation(config.read(tmp_path / "w")).stages
    change(tmp_path / "w", "llm.example", "new.llm.example")
    assert "--allow-server new.llm.example" in refused(tmp_path / "w")
    settings.unlink()
    change(tmp_path / "w", "new.llm.example", "llm.example")
    assert "--allow-server llm.example" in refused(tmp_path / "w")


@pytest.mark.parametrize("command", [["check"], ["evaluate", "--dry-run"], ["evaluate", "--quiet"]])
def test_texts_that_would_travel_unencrypted_are_noted_before_the_first_call(
    tmp_path: Path, command: list[str]
) -> None:
    lines(tmp_path / "log.jsonl", [{"question": "Who?", "contexts": ["Ann built it."], "reference": "Ann"}])
    model = ("--model", "openai:toy@http://llm.invalid:8000", "-O", "retries=0", "-O", "deadline=1")
    with pytest.warns(UserWarning, match="texts and the API key go to llm.invalid unencrypted: use https"):
        CliRunner().invoke(main, [*command, str(tmp_path / "log.jsonl"), *model])


def test_a_step_names_no_server_without_consent(tmp_path: Path) -> None:
    step = f'useful(model="openai:toy@{ELSEWHERE}")'
    folder = workspace(tmp_path / "w", TOML.replace("[judgments]", f"third = 'bm25 >> {step}'\n[judgments]"))
    assert "--allow-server llm.example" in refused(folder)


def test_a_server_gets_nothing_without_consent_and_texts_and_key_with_it(
    tmp_path: Path, settings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ModelAddress, "is_loopback", False)
    monkeypatch.setattr(ModelAddress, "is_private", True)
    with Endpoint(key=SECRET) as server:
        toml = TOML.replace("k = 2", f"k = 2\nlimit = 1\nmodel = {model(server.url)}")
        folder, stranger = workspace(tmp_path / "w", toml), workspace(tmp_path / "x", toml)
        for allowed in ((), ("other.example",)):
            with pytest.raises(InputError, match="--allow-server"):
                evaluate(folder, until="annotate", allow_servers=allowed)
        assert server.seen == []
        assert not settings.exists()
        evaluate(folder, until="annotate", allow_servers=["127.0.0.1"])
        assert all(SECRET in seen.headers["authorization"] for seen in server.asked())
        before = len(server.seen)
        evaluate(folder, until="answer")  # it is remembered
        assert len(server.seen) > before
    # For this file and this server alone.
    assert "--allow-server" in refused(stranger)
    change(folder, server.url, ELSEWHERE)
    assert "--allow-server" in refused(folder)
    assert json.loads(settings.read_text()) == {str((folder / "ragworth.toml").resolve()): ["127.0.0.1"]}
    if os.name == "posix":
        assert (settings.stat().st_mode & 0o777, settings.parent.stat().st_mode & 0o777) == (0o600, 0o700)


@pytest.mark.parametrize(
    ("use", "host"),
    [
        (f"openai:toy@{ELSEWHERE}", "llm.example"),
        ("openai:gpt-4o", "api.openai.com"),
        ("openai:toy@https://api.openai.com./v1", "api.openai.com."),
        ("openai:toy@https://аpi.openai.com", "\\u0430pi.openai.com"),  # a Cyrillic а
        ("openai:toy@http://192.168.1.20:8000", "192.168.1.20"),
        ("openai:toy@http://0.0.0.0:8000", "0.0.0.0"),
        ("openai:toy@https://127.0.0.1:8000", ""),
        ("openai:toy@http://[::1]:8000", ""),
        ("openai:toy@http://localhost:8000", ""),
        ("sampled:openai:toy@http://localhost:8000", ""),
        ("vllm:some/model", ""),
        ("embedded", ""),
        ("none", ""),
    ],
)
def test_the_host_that_gets_a_models_prompts(use: str, host: str) -> None:
    assert remote_hosts(ModelSpec(use)) == [host] * bool(host)


def test_a_proxy_gets_texts_too(tmp_path: Path) -> None:
    local = "openai:toy@http://localhost:8000"
    for use in (local, f"sampled:{local}"):
        assert remote_hosts(ModelSpec(use, {"proxy": "http://Proxy.example:3128"})) == ["proxy.example"]
    folder = workspace(tmp_path / "w")
    change(folder, "k = 2", f'k = 2\nmodel = {{use = "{local}", proxy = "http://proxy.example:3128"}}')
    assert "--allow-server proxy.example" in refused(folder)


def test_a_server_that_the_user_names_needs_no_consent(tmp_path: Path, models: Models, settings: Path) -> None:
    folder = workspace(tmp_path / "w")
    evaluate(folder, until="annotate", model=f"openai:toy@{ELSEWHERE}")
    said = CliRunner().invoke(main, ["check", str(folder), "--model", f"openai:toy@{ELSEWHERE}"])
    assert said.exit_code == 0, said.output
    assert not settings.exists()
    # An option alone leaves the file's model as it is.
    said = CliRunner().invoke(main, ["check", str(with_server(folder)), "-O", "retries=1"])
    assert (said.exit_code, "--allow-server" in said.output) == (2, True)


@pytest.mark.parametrize("text", ["{", "[]", '{"format": 2}', '{"/w/ragworth.toml": [7]}'])
def test_settings_that_cannot_be_read_allow_nothing(tmp_path: Path, settings: Path, text: str) -> None:
    folder = with_server(workspace(tmp_path / "w"))
    settings.parent.mkdir()
    settings.write_text(text)
    with pytest.raises(FormatError, match=r"allowed\.json: it is not a list of allowed servers"):
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
    (beyond / "secret.txt").write_text(PROMPT)
    if what == "prompt's variant":
        (folder / "own.txt").write_text(PROMPT)
        (folder / "own-alone.txt").symlink_to(beyond / "secret.txt")
        change(folder, "length = 8", 'length = 8\nwithout = true\nprompt = "own.txt"')
    elif what == "step":
        change(folder, "[judgments]", f"third = 'rewritten(prompt=\"{beyond}/secret.txt\") >> bm25'\n[judgments]")
    else:
        assert what == "prompt"
        change(folder, "length = 8", 'length = 8\nprompt = "../beyond/secret.txt"')
    return folder, beyond / "secret.txt"


OUTSIDE = ["passages", "link", "run", "prompts", "prompt in a folder", "prompt", "prompt's variant", "step"]


@pytest.mark.parametrize("what", OUTSIDE)
@pytest.mark.parametrize("who", ["model", "judge", "user"])
def test_texts_from_outside_are_sent_to_no_server(tmp_path: Path, what: str, who: str) -> None:
    folder, file = outside(tmp_path, what)
    space = config.read(folder)
    if who == "model":
        space = config.read(with_server(folder))
    elif who == "judge":
        change(folder, "judge = true", f'judge = {{model = "sampled:openai:toy@{ELSEWHERE}"}}')
        space = config.read(folder)
    else:
        space = space.with_model(ModelSpec(f"openai:toy@{ELSEWHERE}", chosen=True))
    with pytest.raises(InputError) as error:
        plan_evaluation(space, allow_servers=["llm.example"])
    assert "ragworth.toml, line " in str(error.value)
    assert f"'{file.resolve()}' is outside of the folder of the workspace, which asks a server" in str(error.value)


def test_a_file_with_a_format_in_its_name_hides_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, file = outside(tmp_path, "run")
    change(folder, "../beyond/first.run", f"trec:{file}")
    decoy = with_server(folder) / f"trec:{file}"
    decoy.parent.mkdir(parents=True)
    decoy.write_bytes(file.read_bytes())
    monkeypatch.chdir(folder)
    assert f"'{file.resolve()}' is outside of the folder" in refused(folder, "llm.example")


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


@pytest.mark.parametrize(
    ("inputs", "link"),
    [
        (".", "results"),
        (".", "results/said"),
        (".", "calls.sqlite"),
        (".", ".ragworth"),
        ("log.jsonl", "log-results"),
        ("log.jsonl", "log-results/figures"),
    ],
)
def test_links_are_noticed_without_a_ragworth_toml(
    tmp_path: Path, inputs: str, link: str, models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, beyond = tmp_path / "w", tmp_path / "beyond"
    beyond.mkdir()
    (folder / link).parent.mkdir(parents=True)
    (folder / link).symlink_to(beyond)
    lines(folder / "log.jsonl", [{"question": "Who?", "answer": "Ann", "contexts": ["Ann built it."]}])
    monkeypatch.chdir(folder)
    with pytest.raises(InputError, match=r"lead. out.* to .*beyond"):
        evaluate(inputs, until="retrieve")
    assert not list(beyond.iterdir())


def test_a_study_of_results_follows_no_link(tmp_path: Path, models: Models, undrawn: list[object]) -> None:
    folder, beyond = workspace(tmp_path / "w"), tmp_path / "beyond"
    beyond.mkdir()
    evaluate(folder)
    for link in ("studies", "studies/alignment", "studies/alignment/cases"):
        path = folder / "results" / link
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(beyond)
        said = CliRunner().invoke(main, ["study", "alignment", str(folder / "results")])
        assert (said.exit_code, "leads out of its folder" in said.output) == (2, True), said.output
        path.unlink()
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
def test_files_beside_results_survive(tmp_path: Path, models: Models, undrawn: list[object]) -> None:
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
