"""The project's managers."""
