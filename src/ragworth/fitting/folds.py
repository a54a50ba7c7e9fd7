"""Parts of the queries, for cross-validation: queries are parted, never the contexts of one query.

Contexts of one query share its passages and its difficulty. Were they parted, what is learned would be tested on what
it was learned from.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


def assign_folds(query: Ints, folds: int, seed: int) -> Ints:
    """The part, 0 to ``folds`` − 1, of each row; ``query`` has the number of its query.

    Parts have equally many queries, or one more than others.
    """
    names, place = np.unique(query, return_inverse=True)
    part = np.random.default_rng(seed).permutation(len(names)) % folds
    return np.asarray(part[place.reshape(-1)], dtype=np.int64)
