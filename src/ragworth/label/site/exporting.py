"""A project's items and labels for the rest of ragworth, and as files."""

from __future__ import annotations

import io
import tempfile
import zipfile
from pathlib import Path

from ragworth.label.dataset import LabelledData
from ragworth.label.exports import LABEL_EXPORTS, export_labels
from ragworth.label.labels import Labels
from ragworth.label.site.events import current_labels
from ragworth.label.site.models import Project, ProjectItem
from ragworth.label.site.project_task import label_item, task_of


def labelled_data(project: Project, *, texts: bool = True) -> LabelledData:
    """The items of a project and the labels as they are now. Without ``texts``, items have no parts."""
    rows = ProjectItem.objects.filter(project=project).order_by("position").defer(*([] if texts else ["parts"]))
    items = {row.key: label_item(row, project.task, texts=texts) for row in rows.iterator(2000)}
    # Every value was checked when it was stored.
    return LabelledData(task_of(project), items, Labels(current_labels(project)))


def export_formats() -> dict[str, str]:
    """The names of all formats with their titles."""
    return {name: LABEL_EXPORTS.get(name).title for name in LABEL_EXPORTS.names()}


def export_bytes(project: Project, name: str) -> tuple[str, bytes]:
    """The labels in a format, with a name for the file: a ZIP archive if the format has several files."""
    with tempfile.TemporaryDirectory() as folder:
        files = export_labels(labelled_data(project), name, folder)
        if len(files) == 1:
            return f"{project.slug}-{files[0].name}", files[0].read_bytes()
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
            for file in files:
                packed.write(file, file.relative_to(Path(folder)))
        return f"{project.slug}-{name}.zip", archive.getvalue()
