"""Have language models answer queries from contexts."""
