"""Hooks of the documentation site (``mkdocs.yml``).

- ``folder/*`` in the navigation stands for all pages of a folder, so a new metric or study needs no entry.
- Links to files outside ``docs/`` lead to the repository. A link to a missing file is a warning, which ``--strict``
  turns into an error. MkDocs itself checks all links and anchors inside ``docs/``.
- The address of the repository comes from ``pyproject.toml``.
"""

from __future__ import annotations

import logging
import os
import re
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
OUTSIDE = re.compile(r"\]\((?P<path>(?:\.\./)+[^)#\s]*)(?P<anchor>#[^)\s]*)?\)")
LOG = logging.getLogger("mkdocs.hooks.site")


def repository() -> str:
    """The address of the repository."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return str(project["urls"]["Repository"])


def expand(nav: Any) -> Any:
    """A navigation with every ``folder/*`` replaced by the pages of that folder."""
    if isinstance(nav, dict):
        return {title: expand(items) for title, items in nav.items()}
    if not isinstance(nav, list):
        return nav
    items: list[Any] = []
    for item in nav:
        if isinstance(item, str) and item.endswith("/*"):
            folder = DOCS / item.removesuffix("/*")
            pages = [page for page in folder.glob("*.md") if page.name != "README.md"]
            items += [page.relative_to(DOCS).as_posix() for page in sorted(pages, key=lambda page: page.name.lower())]
        else:
            items.append(expand(item))
    return items


def link_outside(markdown: str, page: str) -> str:
    """A page whose links to files outside ``docs/`` lead to the repository."""

    def link(match: re.Match[str]) -> str:
        target = Path(os.path.normpath((DOCS / page).parent / match["path"]))
        if target.is_relative_to(DOCS):
            return match[0]
        if not target.exists():
            LOG.warning("%s links to %s, which does not exist", page, match["path"])
        kind = "tree" if target.is_dir() else "blob"
        return f"]({repository()}/{kind}/main/{target.relative_to(ROOT).as_posix()}{match['anchor'] or ''})"

    return OUTSIDE.sub(link, markdown)


def on_config(config: Any) -> Any:
    """Complete the settings before MkDocs collects the pages."""
    config.nav = expand(config.nav)
    config.extra["social"] = [{"icon": "fontawesome/brands/github", "link": repository(), "name": "Source code"}]
    return config


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Rewrite the links of one page."""
    return link_outside(markdown, page.file.src_uri)
