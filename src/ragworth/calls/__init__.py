"""Every call of a model: planned, looked up, run if it is missing, and kept at once."""
