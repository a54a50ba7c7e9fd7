"""How shipped weights were made."""
