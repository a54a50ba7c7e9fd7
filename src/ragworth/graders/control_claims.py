"""Small texts of an invented world, each with a statement that it supports, contradicts, or says nothing about.

A model that can judge support at all tells the three apart. They are asked along with a user's own answers.
"""

from __future__ import annotations

from typing import NamedTuple


class ControlClaims(NamedTuple):
    question: str
    passage: str
    supported: str
    contradicted: str
    neither: str


CONTROL_CLAIMS = (
    ControlClaims(
        "What is known of the Harrow bridge?",
        "The Harrow bridge was opened in 1864. It is made of iron and carries two railway tracks over the river Esk.",
        "The Harrow bridge was opened in 1864.",
        "The Harrow bridge was opened in 1912.",
        "The Harrow bridge was designed by a woman.",
    ),
    ControlClaims(
        "What does the bakery of Lower Tarn sell?",
        "The bakery of Lower Tarn sells rye bread every day but Sunday. It has belonged to the Weir family since 1950.",
        "The bakery is owned by the Weir family.",
        "The bakery belongs to the Moss family.",
        "The bakery also sells coffee.",
    ),
    ControlClaims(
        "How large is the Selby orchestra?",
        "The Selby orchestra has forty-two players, most of them amateurs. They rehearse on Thursdays.",
        "The Selby orchestra rehearses on Thursdays.",
        "All players of the Selby orchestra are professionals.",
        "The Selby orchestra has travelled to Portugal.",
    ),
    ControlClaims(
        "What lives in Corran lake?",
        "Corran lake is nine metres deep and freezes in most winters. Pike and perch live in it, but no trout.",
        "Perch live in Corran lake.",
        "Trout live in Corran lake.",
        "Fishing in Corran lake needs a licence.",
    ),
    ControlClaims(
        "Who was Ilse Varga?",
        "Ilse Varga was a botanist who described eleven species of moss. She taught in Dellmark until 1931.",
        "Ilse Varga described eleven species of moss.",
        "Ilse Varga was a painter.",
        "Ilse Varga had three children.",
    ),
    ControlClaims(
        "When does the ferry to Oran leave?",
        "The ferry to Oran leaves at seven in the morning and takes four hours. Bicycles travel for free.",
        "The crossing to Oran takes four hours.",
        "The ferry to Oran leaves in the evening.",
        "The ferry to Oran was built in Norway.",
    ),
)

LEAST_RIGHT = 12
"""Of the 18 statements, how many a fit model gets right. By guessing, 12 or more are right in 0.4 % of all cases."""
