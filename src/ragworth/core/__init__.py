"""The base of all rooms: errors, registries, interrupts, and files on disk."""
