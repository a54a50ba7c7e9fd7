"""What everything stands on: errors, registries, interrupts, and files on disk."""
