"""A GeneralManager project over the shop's tables, and nothing of gm-chat in it but its settings."""
