"""Answers of language models: compared with accepted ones, graded, and told from those that decline."""
