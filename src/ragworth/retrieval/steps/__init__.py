"""Kinds of steps, one module per topic."""
