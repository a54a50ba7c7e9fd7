"""RAG logs: what evaluation tools, frameworks and programs write about questions, passages and answers."""
