"""Kinds of judgment: of passages, of passages for sub-questions, and of whole contexts."""
