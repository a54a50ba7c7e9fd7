"""Models on this machine: the shared `engine`, and the runtimes that compute."""
