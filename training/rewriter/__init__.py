"""The embedded rewriter: data and training."""
