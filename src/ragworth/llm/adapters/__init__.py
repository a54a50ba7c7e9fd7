"""Adapters that ship with ragworth: small changes to the weights of the embedded model."""
