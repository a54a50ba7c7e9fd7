"""Shared parts of re-ranking steps: reordered lists, model calls, and models that score pairs."""
