"""How well probabilities of declining separate, and what calibrates them."""

from __future__ import annotations

import math

import torch


def auc(values: torch.Tensor, yes: torch.Tensor) -> float:
    """Share of the pairs in which the one that is to decline has the higher value; of equal ones any may count."""
    place = values.argsort().argsort().double() + 1
    n, m = int(yes.sum()), int((~yes).sum())
    return float((place[yes].sum() - n * (n + 1) / 2) / max(1, n * m))


def ece(p: torch.Tensor, yes: torch.Tensor, bins: int = 10) -> float:
    """Expected calibration error: mean distance of probability and share, in equal bins."""
    place = (p * bins).long().clamp(max=bins - 1)
    total = 0.0
    for number in range(bins):
        mine = place == number
        if mine.any():
            total += float(mine.double().mean() * (p[mine].mean() - yes[mine].double().mean()).abs())
    return total


def temperature(odds: torch.Tensor, yes: torch.Tensor, weights: torch.Tensor) -> float:
    """What log-odds are divided by so that what was to be said is likeliest: the best of 400 between 0.3 and 5."""
    grid = torch.exp(torch.linspace(math.log(0.3), math.log(5), 400, dtype=torch.float64))
    scaled = odds[None] / grid[:, None]
    loss = torch.nn.functional.softplus(torch.where(yes[None], -scaled, scaled))
    return float(grid[(loss @ weights).argmin()])
