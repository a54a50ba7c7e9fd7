"""One file for each way to grade an answer."""
