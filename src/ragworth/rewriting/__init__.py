"""Train a query rewriter on what its rewrites are worth to the reader (paper 002, section 5).

Candidates → labels → pairs → an adapter → its evaluation. Each stage reads and writes tables (`tables.py`), so it can
start from a file, and another program can replace it.
"""
