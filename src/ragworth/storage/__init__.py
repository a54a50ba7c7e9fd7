"""Files on disk: who may read them, which of them ragworth wrote, and whether they are inside a workspace."""
