"""What each passage of a context does for an answer: how much of the answer's log-probability it carries.

The value of a set of passages is the log-probability, in nats, that the reader gives to the answer when it is shown
these passages and no others, in the order of the context. Contributions split the value of the whole context:

- `design`: which subsets to ask about, and Shapley values from all subsets or random orders;
- `outcomes`: the value of a subset, and what the contributions of one context amount to;
- `rows`: contributions as rows, pairs of passages, and the profile over positions;
- `hops`: the same for the searches of an agent;
- `kinds`: the annotator and the grader.
"""

MOST = 0.9
"""The share of the contributions that the sentence on a context goes by."""
