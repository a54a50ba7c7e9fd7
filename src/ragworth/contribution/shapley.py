"""Exact Shapley values and interactions, from the values of all subsets.

Papers: Shapley 1953, A Value for n-Person Games; Grabisch and Roubens 1999 (interaction index).
"""

from __future__ import annotations

from math import comb

import numpy as np

from ragworth.contribution.subsets import Floats, SubsetValues


def shapley_values(values: SubsetValues, k: int) -> Floats:
    """The mean gain from adding each passage, over all orders of the k passages; passages × sentences.

    φ_i = Σ_{S ∌ i} |S|! (k−1−|S|)! / k! · (v(S ∪ i) − v(S)). The values sum to v(all) − v(none).
    """
    table = np.array([values[mask] for mask in range(1 << k)])
    sizes = _sizes(k)
    weights = np.array([1 / (k * comb(k - 1, size)) if size < k else 0.0 for size in range(k + 1)])
    masks = np.arange(1 << k)
    found = np.empty((k, table.shape[1]))
    for i in range(k):
        without = masks[masks >> i & 1 == 0]
        found[i] = weights[sizes[without]] @ (table[without | 1 << i] - table[without])
    return found


def shapley_interactions(values: SubsetValues, k: int) -> Floats:
    """The Shapley interaction index of each two passages, for the whole answer; symmetric, with a diagonal of 0.

    I_ij is the mean of v(S ∪ ij) − v(S ∪ i) − v(S ∪ j) + v(S) with weights |S|! (k−2−|S|)! / (k−1)!. It is 0 if they
    do the same whether or not the other is there, negative if they replace and positive if they need each other.
    """
    table = np.array([float(values[mask].sum()) for mask in range(1 << k)])
    sizes = _sizes(k)
    weights = np.array([1 / ((k - 1) * comb(k - 2, size)) if size < k - 1 else 0.0 for size in range(k + 1)])
    masks = np.arange(1 << k)
    found = np.zeros((k, k))
    for i in range(k):
        for j in range(i):
            one, two = 1 << i, 1 << j
            rest = masks[(masks & (one | two)) == 0]
            mixed = table[rest | one | two] - table[rest | one] - table[rest | two] + table[rest]
            found[i, j] = found[j, i] = weights[sizes[rest]] @ mixed
    return found


def _sizes(k: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The number of passages in each subset."""
    return np.array([mask.bit_count() for mask in range(1 << k)], dtype=np.int64)
