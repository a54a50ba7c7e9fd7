"""Rating scales shared by several kinds of judgment."""

from __future__ import annotations

from ragworth.tasks.labels import LabelScale

RATING_SCALE = LabelScale.numbers(0, 5)
"""How well a text answers a sub-question: 0 not at all, 5 fully."""
