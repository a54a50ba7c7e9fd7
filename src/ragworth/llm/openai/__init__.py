"""``openai:MODEL@URL``: models behind any endpoint that speaks OpenAI's interface."""
