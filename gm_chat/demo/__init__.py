"""A ready project to try gm-chat on: a machine builder's data, four users, one command (``gm-chat demo``)."""
