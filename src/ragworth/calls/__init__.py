"""Model calls: planned, looked up in the store, run if missing, and stored at once."""
