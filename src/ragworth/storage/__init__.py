"""Files on disk: who may read them, which of them ragworth wrote, and whether they lie inside a workspace."""
