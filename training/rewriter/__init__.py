"""Conversations to train and judge query rewriters on, and the experiments with them."""
