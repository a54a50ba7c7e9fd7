"""Statistics: pure functions of arrays. Seeds are arguments, p-values are never 0, constants are defined."""
