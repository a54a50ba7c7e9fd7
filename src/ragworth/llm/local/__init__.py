"""Models on this machine: what they share (`engine`), and the runtimes that compute."""
