"""Our metrics inside other people's tools, and theirs inside ours."""
