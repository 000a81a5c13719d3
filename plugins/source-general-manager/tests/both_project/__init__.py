"""A GeneralManager project in which GeneralManager's own chat is on, and ours beside it."""
