"""A GeneralManager project's app over the tables: it wraps the models that are there."""
