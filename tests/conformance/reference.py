"""Every metric a second time: slow, plain Python, written from the definitions and sharing nothing with ours.

One case is one context with all that is known about its query. A metric gives a number, or the reasons why
there can be none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple


class Case(NamedTuple):
    """One context and what is known: ``others`` are the other systems' contexts for the same query.

    ``longest`` is the length of the system's longest context.
    """

    shown: Sequence[str]
    others: Sequence[Sequence[str]]
    relevance: Mapping[str, float]
    abstention: Mapping[str, float]
    ratings: Mapping[str, Mapping[str, float]]
    tokens: Mapping[str, float]
    downstream: Mapping[str, float]
    likelihood: Mapping[str, float]
    longest: int


class Missing(NamedTuple):
    """No value, for any of these reasons."""

    reasons: frozenset[str]


Answer = float | Missing
Cut = int | None


def ranked(scores: Mapping[str, float]) -> list[str]:
    """trec_eval's order: score descending, then id descending."""
    by_id = sorted(scores, reverse=True)
    return sorted(by_id, key=lambda passage: -scores[passage])


def top(shown: Sequence[str], k: Cut) -> list[str]:
    return list(shown) if k is None else list(shown)[:k]


def good(case: Case, passage: str, rel: float) -> bool:
    return passage in case.relevance and case.relevance[passage] >= rel


def n_good(case: Case, passages: Sequence[str], rel: float) -> int:
    return len([p for p in passages if good(case, p, rel)])


def all_good(case: Case, rel: float) -> int:
    """N_p: how many the judgments hold."""
    return n_good(case, list(case.relevance), rel)


def precision(case: Case, k: Cut, rel: float) -> float:
    size = len(case.shown) if k is None else k
    return n_good(case, top(case.shown, k), rel) / size if size else 0.0


def recall(case: Case, k: Cut, rel: float) -> float:
    total = all_good(case, rel)
    return n_good(case, top(case.shown, k), rel) / total if total else 0.0


def f1(case: Case, k: Cut, rel: float) -> float:
    p, r = precision(case, k, rel), recall(case, k, rel)
    return 2 * p * r / (p + r) if p + r else 0.0


def average_precision(case: Case, k: Cut, rel: float, ideal: str) -> float:
    context = top(case.shown, k)
    wanted = n_good(case, context, rel) if ideal == "retrieved" else all_good(case, rel)
    total = 0.0
    for i, passage in enumerate(context):
        if good(case, passage, rel):
            total += n_good(case, context[: i + 1], rel) / (i + 1)
    return total / wanted if wanted else 0.0


def reciprocal_rank(case: Case, k: Cut, rel: float) -> float:
    for i, passage in enumerate(top(case.shown, k)):
        if good(case, passage, rel):
            return 1 / (i + 1)
    return 0.0


def dcg(gains: Sequence[float]) -> float:
    return sum(gain / math.log2(i + 2) for i, gain in enumerate(gains))


def ndcg(case: Case, k: Cut, gain: str, gains: str, ideal: str) -> float:
    table = {} if gains == "none" else {float(a): float(b) for a, b in (pair.split("=") for pair in gains.split(","))}

    def worth(passage: str) -> float:
        if passage not in case.relevance or case.relevance[passage] < 0:
            return 0.0
        relevance = case.relevance[passage]
        if relevance in table:
            return table[relevance]
        return 2.0**relevance - 1 if gain == "exponential" else relevance

    context = top(case.shown, k)
    source = context if ideal == "retrieved" else list(case.relevance)
    best = sorted((worth(p) for p in source if worth(p) > 0), reverse=True)[:k]
    return dcg([worth(p) for p in context]) / dcg(best) if dcg(best) else 0.0


def success(case: Case, k: Cut, rel: float) -> float:
    return 1.0 if any(good(case, p, rel) for p in top(case.shown, k)) else 0.0


def r_precision(case: Case, k: Cut, rel: float) -> float:
    total = all_good(case, rel)
    return n_good(case, case.shown[:total], rel) / total if total else 0.0


def bpref(case: Case, k: Cut, rel: float) -> float:
    def bad(passage: str) -> bool:
        # Below zero says that the passage was never in the pool, which is not a judgment against it.
        return passage in case.relevance and 0 <= case.relevance[passage] < rel

    total, wrong = all_good(case, rel), len([p for p in case.relevance if bad(p)])
    value = 0.0
    for i, passage in enumerate(case.shown):
        if good(case, passage, rel):
            above = len([p for p in case.shown[:i] if bad(p)])
            value += 1 - min(above, total) / min(total, wrong) if above else 1.0
    return value / total if total else 0.0


def judged(case: Case, k: Cut) -> float:
    context = top(case.shown, k)
    return len([p for p in context if p in case.relevance]) / len(context) if context else 0.0


def share(found: float, shown: float, total: float, alpha: float) -> float:
    below = alpha * shown + (1 - alpha) * total
    return found / below if below else 0.0


def f(case: Case, k: Cut, alpha: float, rel: float) -> float:
    context = top(case.shown, k)
    return share(n_good(case, context, rel), len(context), all_good(case, rel), alpha)


def f_e(case: Case, k: Cut, alpha: float, estimate: str, depth: float, whole: bool, rel: float) -> Answer:
    context = top(case.shown, k)
    ended = whole or (k is not None and len(case.shown) < case.longest)
    if estimate in ("double", "growth") and len(case.shown) < 2 * len(context) and not ended:
        return Missing(frozenset({"cut-ranking"}))
    found = n_good(case, context, rel)
    twice = n_good(case, case.shown[: 2 * len(context)], rel)
    mine = {p for p in case.shown if good(case, p, rel)}
    theirs = {p for other in case.others for p in other if good(case, p, rel)}
    if estimate == "double":
        total: float = twice
    elif estimate == "pool":
        total = len(mine | theirs)
    elif estimate == "chapman":
        total = (len(mine) + 1) * (len(theirs) + 1) / (len(mine & theirs) + 1) - 1
    else:
        power = min(math.log2(twice / found), 1.0) if found else 1.0
        total = twice * (depth / 2) ** power
    return share(found, len(context), total, alpha)


def t(case: Case, k: Cut, alpha: float, rel: float) -> float:
    context = top(case.shown, k)
    found = n_good(case, context, rel)
    return (1 - alpha) * found - alpha * (len(context) - found) / len(context) if context else 0.0


def t_u(case: Case, k: Cut, alpha: float, rel: float) -> float:
    context = top(case.shown, k)
    found = n_good(case, context, rel)
    return (1 - alpha) * found - alpha * (len(context) - found)


def utilities(case: Case, k: Cut, rel: float) -> list[float] | Missing:
    """u = R·(1 − p_abstain) of each passage shown."""
    context = top(case.shown, k)
    if any(p not in case.abstention for p in context):
        return Missing(frozenset({"unjudged"}))
    return [(1 if good(case, p, rel) else -1) * (1 - case.abstention[p]) for p in context]


def udcg(case: Case, k: Cut, gamma: float, raw: bool, rel: float) -> Answer:
    u = utilities(case, k, rel)
    if isinstance(u, Missing):
        return u
    inside = (sum(max(x, 0) for x in u) + gamma * sum(min(x, 0) for x in u)) / len(u) if u else 0.0
    return inside if raw else 1 / (1 + math.exp(-inside))


def utility(case: Case, k: Cut, rel: float) -> Answer:
    u = utilities(case, k, rel)
    if isinstance(u, Missing):
        return u
    return sum(u) / len(u) if u else 0.0


def distraction(case: Case, k: Cut, threshold: float, rel: float) -> Answer:
    u = utilities(case, k, rel)
    if isinstance(u, Missing):
        return u
    # Only irrelevant passages have a negative utility, and its size is their distracting effect.
    return len([x for x in u if -x > threshold]) / len(u) if u else 0.0


def known_of(values: Mapping[str, float], context: Sequence[str]) -> list[float] | Missing:
    """The value of each passage shown."""
    if any(p not in values for p in context):
        return Missing(frozenset({"unjudged"}))
    return [values[p] for p in context]


def erag(case: Case, k: Cut, of: str) -> Answer:
    s = known_of(case.downstream, top(case.shown, k))
    if isinstance(s, Missing) or not s:
        return s if isinstance(s, Missing) else 0.0
    return max(s) if of == "max" else math.fsum(s) / len(s)


def erag_ndcg(case: Case, k: Cut, ideal: str) -> Answer:
    s = known_of(case.downstream, top(case.shown, k))
    if isinstance(s, Missing):
        return s
    best = sorted(s if ideal == "retrieved" else case.downstream.values(), reverse=True)[:k]
    return dcg(s) / dcg(best) if dcg(best) else 0.0


def erag_ap(case: Case, k: Cut, ideal: str) -> Answer:
    """The expectation over thresholds: between two levels that occur, they are all alike."""
    s = known_of(case.downstream, top(case.shown, k))
    if isinstance(s, Missing):
        return s
    wanted = s if ideal == "retrieved" else list(case.downstream.values())
    above = below = lower = 0.0
    for level in sorted({*s, *wanted}):
        likely, lower = level - lower, level
        relevant = [value >= level for value in s]
        precisions = [sum(relevant[: i + 1]) / (i + 1) for i, hit in enumerate(relevant) if hit]
        above += likely * sum(precisions)
        below += likely * len([value for value in wanted if value >= level])
    return above / below if below else 0.0


def likelihood(case: Case, k: Cut, of: str) -> Answer:
    logs = known_of(case.likelihood, top(case.shown, k))
    if isinstance(logs, Missing):
        return logs
    if not logs:
        return Missing(frozenset({"empty-context"}))
    return max(logs) if of == "max" else math.fsum(logs) / len(logs)


def answered_by(case: Case, passage: str, eta: float) -> set[str]:
    return {question for question, rating in case.ratings.get(passage, {}).items() if rating >= eta}


def required(case: Case, eta: float) -> list[str]:
    """Greedily the passage that answers most open sub-questions; the first of equals."""
    chosen: list[str] = []
    closed: set[str] = set()
    while True:
        best, most = "", 0
        for passage in case.ratings:
            new = len(answered_by(case, passage, eta) - closed)
            if new > most:
                best, most = passage, new
        if not most:
            return chosen
        chosen.append(best)
        closed |= answered_by(case, best, eta)


def union(case: Case, passages: Sequence[str], eta: float) -> set[str]:
    return {question for passage in passages for question in answered_by(case, passage, eta)}


def coverage(case: Case, k: Cut, eta: float) -> Answer:
    answerable = union(case, required(case, eta), eta)
    if not answerable:
        return Missing(frozenset({"no-answerable"}))
    return len(union(case, top(case.shown, k), eta) & answerable) / len(answerable)


def novelty(case: Case, seen: Sequence[str], passage: str, alpha: float, eta: float) -> float:
    """What a passage is worth after those seen: each repetition of an answer leaves 1 − α of it."""
    value = 0.0
    for question in answered_by(case, passage, eta):
        repeats = len([p for p in seen if question in answered_by(case, p, eta)])
        value += (1 - alpha) ** repeats
    return value


def alpha_ndcg(case: Case, k: Cut, alpha: float, eta: float, at: str) -> Answer:
    best: list[str] = []
    if at == "required":
        size = len(required(case, eta))
        k = size if k is None else min(k, size)
    left = sorted((p for p in case.ratings if answered_by(case, p, eta)), reverse=True)
    while left and (k is None or len(best) < k):
        pick = max(left, key=lambda p: novelty(case, best, p, alpha, eta))
        best.append(pick)
        left.remove(pick)
    if not best:
        return Missing(frozenset({"no-answerable"}))

    def total(order: Sequence[str]) -> float:
        return dcg([novelty(case, order[:i], p, alpha, eta) for i, p in enumerate(order)])

    return total(top(case.shown, k)) / total(best)


def density(case: Case, k: Cut, w: float, eta: float) -> Answer:
    context, needed = top(case.shown, k), required(case, eta)
    cov = coverage(case, k, eta)
    reasons = set(cov.reasons) if isinstance(cov, Missing) else set()
    if any(p not in case.tokens for p in [*context, *needed]):
        reasons.add("no-tokens")
    if isinstance(cov, Missing) or reasons:
        return Missing(frozenset(reasons))
    if not cov:
        return 0.0
    # The required subset answers all there is to answer: its coverage is 1.
    mine = cov / sum(case.tokens[p] for p in context)
    return float((mine / (1 / sum(case.tokens[p] for p in needed))) ** w)


METRICS: dict[str, Callable[..., Answer]] = {
    "P": precision,
    "R": recall,
    "F1": f1,
    "AP": average_precision,
    "RR": reciprocal_rank,
    "nDCG": ndcg,
    "Success": success,
    "Rprec": r_precision,
    "Bpref": bpref,
    "Judged": judged,
    "F": f,
    "F_e": f_e,
    "T": t,
    "T_u": t_u,
    "UDCG": udcg,
    "Utility": utility,
    "Distraction": distraction,
    "eRAG": erag,
    "eRAG_nDCG": erag_ndcg,
    "eRAG_AP": erag_ap,
    "Likelihood": likelihood,
    "Cov": coverage,
    "alpha_nDCG": alpha_ndcg,
    "Den": density,
}
