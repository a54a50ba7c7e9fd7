"""The embedded reader: data, training, evaluation."""
