"""The one application of the site."""

from __future__ import annotations

from django.apps import AppConfig


class LabelSiteConfig(AppConfig):
    """Tables are named ``label_…``."""

    name = "ragworth.label.site"
    label = "label"
    verbose_name = "Labelling"
    default_auto_field = "django.db.models.BigAutoField"
