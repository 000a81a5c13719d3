"""Conversations, messages and turns: the only code that touches our models, and the pool that runs ORM work."""
