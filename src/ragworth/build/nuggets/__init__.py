"""Nuggets: atomic facts that a good answer contains, as in TREC RAG's AutoNuggetizer.

Paper: Pradeep et al., Initial Nugget Evaluation Results for the TREC 2024 RAG Track with the AutoNuggetizer Framework.
"""
