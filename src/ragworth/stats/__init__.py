"""Statistics as pure functions of arrays. Seeds are arguments, p-values are never 0, constant input is handled."""
