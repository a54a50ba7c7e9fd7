"""The embedded reader: data and training."""
