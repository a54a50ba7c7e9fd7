"""Kinds of steps, one subject a file."""
