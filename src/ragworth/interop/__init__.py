"""Use ragworth's metrics in other tools, and their metrics and retrievers in ragworth."""
