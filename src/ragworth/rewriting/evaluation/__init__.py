"""Evaluation of rewriters: every arm on the same turns, with tests over conversations."""
