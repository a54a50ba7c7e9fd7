"""Open the site of a folder: configure Django, and bring the database up to date."""

from __future__ import annotations

import secrets
import warnings
from pathlib import Path
from typing import Any

from ragworth.core.errors import InputError, MissingExtraError, format_count
from ragworth.core.files import private_folder, refuse_links
from ragworth.label.site.settings import (
    DATABASE_FILE,
    SiteOptions,
    database_settings,
    keep_key,
    read_key,
    site_settings,
)

LABEL_FOLDER = "labels"
"""The site's folder in a workspace."""


def site_folder(place: str | Path) -> Path:
    """The folder of a site: ``labels`` in a workspace, or the folder itself if it is one."""
    place = Path(place)
    folder = place if (place / DATABASE_FILE).exists() else place / LABEL_FOLDER
    refuse_links(folder, place, "name the folder of the site itself")
    return folder


def open_site(folder: Path, options: SiteOptions | None = None, *, create: bool = False) -> None:
    """Configure Django for a site and apply missing migrations.

    A process can open several sites, one after another; models and views always use the last one. A database that came
    with a folder may be somebody else's, who knows its passwords and links: they end when this user first opens it.
    """
    options = options or SiteOptions()
    if not create and not options.database and not (folder / DATABASE_FILE).is_file():
        raise InputError("there is no labelling project", file=str(folder), remedy="create one with ragworth label new")
    stored_key = read_key(folder)
    key = stored_key or secrets.token_urlsafe(60)
    _configure(folder, options, key)
    _migrate()
    if not stored_key:
        if not options.database:
            _end_logins(folder)
        keep_key(folder, key)


def _end_logins(folder: Path) -> None:
    from ragworth.label.site.append_only import replace_triggers
    from ragworth.label.site.links import end_logins

    replace_triggers()
    if people := end_logins():
        warnings.warn(
            f"the site in {folder} was not opened here before, so the passwords and links of "
            f"{format_count(people, 'person', 'people')} don't work; labels are kept. Invite them again: "
            "ragworth label assign",
            UserWarning,
            stacklevel=3,
        )


def _configure(folder: Path, options: SiteOptions, key: str) -> None:
    try:
        import django
        from django.conf import settings
        from django.db import connections
    except ImportError as error:
        raise MissingExtraError("django", "label", "the labelling site") from error
    private_folder(folder)
    values = site_settings(folder, options, key)
    if not settings.configured:
        settings.configure(**values)
        django.setup()
        return
    connections.close_all()
    for name, value in values.items():
        setattr(settings, name, value)
    _forget_connections(connections)
    connections.settings = connections.configure_settings({"default": database_settings(folder, options.database)})


def _forget_connections(connections: Any) -> None:
    for alias in list(connections.settings):
        if hasattr(connections._connections, alias):
            del connections[alias]


def _migrate() -> None:
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import call_command
    from django.db import DatabaseError, connection
    from django.db.migrations.executor import MigrationExecutor

    try:
        with connection.cursor():
            pass
    except ImproperlyConfigured as error:
        raise MissingExtraError("psycopg", "label-postgres", "a PostgreSQL database") from error
    except DatabaseError as error:
        raise InputError(f"the database can't be opened: {error}") from error
    migrations = MigrationExecutor(connection)
    # The command takes far longer than looking whether it has anything to do.
    if migrations.migration_plan(migrations.loader.graph.leaf_nodes()):
        call_command("migrate", interactive=False, verbosity=0)
