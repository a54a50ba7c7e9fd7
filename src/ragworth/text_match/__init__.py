"""Compare texts: spelling, numbers, dates, refusals, overlap and similarity."""
