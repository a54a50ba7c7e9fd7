"""``ragworth label``: the labelling site."""

from __future__ import annotations

import re
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from ragworth.core.errors import InputError, format_count, format_list, quote_short

F = TypeVar("F", bound=Callable[..., Any])
ROLES = ("annotator", "adjudicator", "owner")


def site_option(function: F) -> F:
    """Where the data is."""
    return click.option(
        "--database",
        envvar="RAGWORTH_LABEL_DATABASE",
        default="",
        metavar="URL",
        help="PostgreSQL instead of SQLite: postgresql://user:password@host/name.  [env: RAGWORTH_LABEL_DATABASE]",
    )(function)


def project_option(function: F) -> F:
    return click.option("-p", "--project", "slug", help="Name of the project, if there are several.")(function)


@click.group("label", short_help="Have people label passages, answers and coverage.")
def command() -> None:
    """Have people label passages, answers and sub-questions on a web page.

    A project is a task with its items. Projects, accounts and labels are in the folder `labels` of a workspace.

    \b
    ragworth label new examples/demo --task relevance
    ragworth label serve examples/demo
    ragworth label status examples/demo
    ragworth label export examples/demo --to tables -o human
    """


@command.command("new", short_help="Create a project from a workspace, results or files.")
@click.argument("places", nargs=-1, required=True, metavar="WORKSPACE|RESULTS|FILE...")
@click.option("-t", "--task", "kind", required=True, help="Kind of the task, or a TOML file with your own.")
@click.option("--name", help="Name of the project in addresses and commands.  [default: the task's]")
@click.option("--title", help="Title of the project.  [default: the name]")
@click.option("--items", "item_file", type=click.Path(dir_okay=False), help="Label the items of this JSONL file.")
@click.option(
    "--judgments", type=click.IntRange(1, 100), default=1, show_default=True, help="People who label an item."
)
@click.option(
    "-k", type=click.IntRange(1), help="Passages of each system and query to label.  [default: as evaluated, or 5]"
)
@click.option("--random-queries", type=click.IntRange(0), help="Draw this many queries at random.  [default: all]")
@click.option(
    "--disputed", type=click.IntRange(0), default=0, help="Add about this many items on which judges disagree."
)
@click.option("--judges", multiple=True, type=click.Path(), help="Judgments to find disagreement in; repeat for more.")
@click.option("--gold", type=click.Path(dir_okay=False), help="JSONL file of items with a right answer, for everyone.")
@click.option("--repeats", type=click.IntRange(0), default=0, help="Items that a person gets a second time.")
@click.option("--after", help="Project that has to be finished first, group by group (task coverage).")
@click.option(
    "--lease", type=click.IntRange(1), default=30, show_default=True, help="Minutes that a person holds an item."
)
@click.option("--suggestions", is_flag=True, help="Show the suggestions of the items, and record that.")
@click.option("--not-blind", is_flag=True, help="Show ids and system names.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of everything random.")
@site_option
def new_command(places: tuple[str, ...], kind: str, name: str | None, title: str | None, **options: Any) -> None:
    """Create a project of a TASK. Tasks: relevance, utility, answerability, passage-answerability, coverage,
    answer-grade, preference, context-preference, question-soundness, or a TOML file.

    \b
    ragworth label new examples/demo --task relevance --judgments 3
    ragworth label new examples/demo --task relevance --random-queries 20 --repeats 10
    ragworth label new my-folder --task tone.toml --items items.jsonl
    """
    from ragworth.label.site.creation import create_from_sources
    from ragworth.label.tasks import load_task

    task = load_task(kind)
    slug = re.sub(r"[^a-z0-9_-]+", "-", (name or task.kind).lower()).strip("-")
    if not 0 < len(slug) <= 60:
        raise InputError(
            f"{quote_short(name)} can't be the name of a project", expected="letters and digits, at most 60"
        )
    made = create_from_sources(places, kind, slug, title or name or task.kind, options)
    often = f"which open after {options['after']}" if task.after else f"{options['judgments']} × each"
    click.echo(f"Project {slug}: {format_count(made.items, 'item')}, {often}.")
    for reason, count in made.left_out.items():
        click.echo(f"note: {format_count(count, 'unit')} left out: {reason}", err=True)
    place = Path(places[0])
    click.echo(f"\nStart the site:\n  ragworth label serve {place if place.is_dir() else place.parent}")


@command.command("serve", short_help="Start the site and open it in a browser.")
@click.argument("place", default=".", metavar="WORKSPACE")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on; others need accounts.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8765, show_default=True, help="Port; 0 for any free one."
)
@click.option(
    "--name", "names", multiple=True, help="Name under which people reach the site, such as label.example.org."
)
@click.option("--https", is_flag=True, help="A proxy before the server adds HTTPS.")
@click.option("--proxy", default="127.0.0.1", show_default=True, help="Address of that proxy.")
@click.option("--plain-http", is_flag=True, help="Let other machines in without HTTPS: passwords are not encrypted.")
@click.option("--threads", type=click.IntRange(1, 64), default=8, show_default=True, help="Requests at the same time.")
@click.option("--no-browser", is_flag=True, help="Print the address, and don't open a browser.")
@site_option
def serve_command(place: str, no_browser: bool, **options: Any) -> None:
    """Serve the projects of WORKSPACE. On this machine only, the owner is signed in by a link that works once.

    \b
    ragworth label serve examples/demo
    ragworth label serve examples/demo --name label.example.org --https
    """
    from ragworth.label.site.server import ServerOptions, SiteServer
    from ragworth.label.site.startup import site_folder

    chosen = ServerOptions(**options)
    server = SiteServer(site_folder(place), chosen)
    click.echo(f"The site is at {server.address} (Ctrl-C ends it).")
    if chosen.is_local and not no_browser and webbrowser.open(server.link):
        click.echo("It is open in your browser.")
    elif server.link:
        click.echo(f"Sign in as the owner, once, with this link:\n  {server.link}")
    server.run()


@command.command("assign", short_help="Add people and print their invitation links.")
@click.argument("place", metavar="WORKSPACE")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("-p", "--project", "slugs", multiple=True, help="Projects to work on; repeat for more.  [default: all]")
@click.option("--role", type=click.Choice(ROLES), help="What they may do.  [default: annotator, or the role they have]")
@click.option("--most", type=click.IntRange(1), help="Maximum items for each person.")
@click.option("--days", type=click.IntRange(1, 90), default=7, show_default=True, help="Days that the links work.")
@click.option("--url", default="http://127.0.0.1:8765", show_default=True, help="Address of the site, for the links.")
@site_option
def assign_command(place: str, names: tuple[str, ...], slugs: tuple[str, ...], **options: Any) -> None:
    """Let people work on projects, and print an invitation link for everyone who has no password yet.

    \b
    ragworth label assign examples/demo ana ben --url https://label.example.org
    ragworth label assign examples/demo cleo --role adjudicator
    ragworth label assign examples/demo ana -p relevance --most 50
    """
    _open(place, options["database"])
    from ragworth.label.site.creation import invite_people

    for name, link in invite_people(names, slugs, **options):
        click.echo(f"{name}: {link}" if link else f"{name}: has a password")


@command.command("status", short_help="Show the progress of projects.")
@click.argument("place", default=".", metavar="WORKSPACE")
@click.option("-f", "--format", "look", type=click.Choice(["text", "csv", "json", "markdown"]), default="text")
@site_option
def status_command(place: str, look: str, database: str) -> None:
    """Print items, judgments and disputes of each project, and what each person has done.

    \b
    ragworth label status examples/demo
    """
    _open(place, database)
    from ragworth.cli.output import OutputTable, emit
    from ragworth.label.site.creation import status_tables

    tables = [OutputTable(*each) for each in status_tables()]
    if not tables[0].frame.height:
        raise InputError("there is no project", file=place, remedy="create one with ragworth label new")
    emit(tables, look, None)


@command.command("export", short_help="Write labels as tables, qrels, CRUX or Label Studio files.")
@click.argument("place", default=".", metavar="WORKSPACE")
@project_option
@click.option("--to", "form", default="tables", show_default=True, help="Export format.")
@click.option("-o", "--output", type=click.Path(file_okay=False), required=True, help="Folder to write to.")
@site_option
def export_command(place: str, slug: str | None, form: str, output: str, database: str) -> None:
    """Write the labels of a project as they are now, to a new or an empty folder.

    Formats: tables (judgments, ratings, outcomes with judge ids), labels, qrels, crux, label-studio.

    \b
    ragworth label export examples/demo --to tables -o human
    ragworth label export examples/demo -p relevance --to qrels -o human
    """
    _open(place, database)
    from ragworth.cli.output import print_notes
    from ragworth.label.exports import export_labels
    from ragworth.label.exports.notes import export_notes
    from ragworth.label.site.exporting import labelled_data

    folder = Path(output)
    if folder.is_dir() and any(folder.iterdir()):
        raise InputError(
            "the folder has files, which would be mixed with the exported ones",
            file=output,
            expected="a new or an empty folder",
            remedy="choose another one with -o, or delete it",
        )
    data = labelled_data(_project(slug))
    for file in export_labels(data, form, folder):
        click.echo(f"wrote {file}")
    print_notes(export_notes(data, form), quiet=False)


@command.command("import", short_help="Add labels from a file.")
@click.argument("place", metavar="WORKSPACE")
@click.argument("file", type=click.Path())
@project_option
@click.option("--from", "form", default="labels", show_default=True, help="Format: labels, crux, label-studio.")
@click.option("-t", "--task", "kind", help="Create the project, of this task, with the items of the file.")
@site_option
def import_command(place: str, file: str, slug: str | None, form: str, kind: str | None, database: str) -> None:
    """Add the labels of FILE to a project. Importing it again adds nothing.

    \b
    ragworth label import examples/demo human/labels.jsonl -p relevance
    ragworth label import examples/demo export.json --from label-studio --task relevance
    """
    from ragworth.cli.output import print_notes
    from ragworth.label.site.creation import import_file

    _open(place, database, create=kind is not None)
    counts, notes = import_file(file, form, kind, slug if kind else _project(slug).slug)
    print_notes(notes, quiet=False)
    click.echo(f"{format_count(counts.added, 'label')} added, {counts.known:,} were there already.")
    if counts.extra:
        text = f"{format_count(counts.extra, 'label')} kept that don't count: their items had all labels"
        click.echo(f"note: {text}", err=True)
    if counts.outdated:
        text = f"{format_count(counts.outdated, 'label')} left out: the site has other ones of the same people"
        click.echo(f"note: {text} that are not older", err=True)


def _open(place: str, database: str, create: bool = False) -> None:
    from ragworth.label.site.settings import SiteOptions
    from ragworth.label.site.startup import open_site, site_folder

    open_site(site_folder(place), SiteOptions(database), create=create)


def _project(slug: str | None) -> Any:
    """The project of this name, or the only one."""
    from ragworth.label.site.models import Project

    names = list(Project.objects.order_by("id").values_list("slug", flat=True))
    if slug is None and len(names) == 1:
        slug = names[0]
    if slug not in names:
        found = "there are several projects" if slug is None else f"there is no project {quote_short(slug)}"
        raise InputError(found, expected=f"one of {format_list(names)}", remedy="name it with --project")
    return Project.objects.get(slug=slug)
