"""Workspaces of the usual kinds, for files that are yet to come."""

from __future__ import annotations

from ragworth.init.toml_writer import TomlTables
from ragworth.workspace.toml import TomlValue

DEFAULT_SYSTEMS: dict[str, TomlValue] = {
    "bm25": 'bm25(stopwords="english") % 5',
    "reversed": 'bm25(stopwords="english") % 5 >> reversed',
    "oracle": "oracle % 5",
    "adversary": 'bm25(stopwords="english") >> adversary % 5',
    "random": "random % 5",
}
"""Systems that need no file but the collection's."""

TEMPLATES: dict[str, TomlTables] = {
    "demo": {
        "": {"title": "The Marrowen Isles", "k": 5, "model": "embedded"},
        "collection": {
            "queries": "queries.jsonl",
            "passages": "passages.jsonl",
            "answers": "queries.jsonl",
            "subquestions": "subquestions.jsonl",
            "qrels": "qrels.txt",
            "ratings": "ratings.txt",
        },
        "systems": DEFAULT_SYSTEMS,
        "judgments": {"abstention": True},
        "answers": {},
        "grades": {"deterministic": True},
        "metrics": {"baseline": "bm25"},
    },
    "runs": {
        "": {"k": 5},
        "collection": {"qrels": "qrels.txt"},
        "systems": {"bm25": {"run": "runs/bm25.run"}, "dense": {"run": "runs/dense.run"}},
        "metrics": {"use": ["nDCG@5", "R@5", "RR@5"], "baseline": "bm25"},
    },
    "beir": {
        "": {"k": 5, "limit": 100, "model": "embedded"},
        "collection": {"from": "beir:collection"},
        "systems": DEFAULT_SYSTEMS,
        "judgments": {"abstention": True},
        "metrics": {"baseline": "bm25"},
    },
    "rag-log": {
        "": {"k": 5, "model": "embedded"},
        "systems": {"*": {"run": "log.jsonl"}},
        "judgments": {"abstention": True, "relevance": True},
        "answers": {},
        "grades": {"deterministic": True},
    },
    "minimal": {
        "collection": {"queries": "queries.jsonl", "passages": "passages.jsonl", "qrels": "qrels.txt"},
        "systems": {"bm25": 'bm25(stopwords="english") % 5'},
    },
}
