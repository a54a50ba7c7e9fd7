"""Ways to grade answers: by comparing texts, or by asking a model."""
