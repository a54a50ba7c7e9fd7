"""What re-ranking steps have in common: lists in a new order, models that are asked, and models that score pairs."""
