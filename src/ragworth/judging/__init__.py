"""Shared parts of everything that asks a model: texts by id, labels, settings, and rows with a value or a reason."""
