"""Ask a Django application's data in plain language, and change it safely.

Importing this package imports nothing else: no Django, no SDK. The parts a project touches:

* ``gm_chat.managers``: declare what the chat may see, in an app's ``chat_managers.py``.
* ``gm_chat.plugin``: the contract for providers, tools, manager sources, audit sinks and more.
* ``gm_chat.urls`` / ``gm_chat.asgi``: the routes, for projects that place them by hand.
"""

__version__ = "0.1.0"
