"""A provider without a language model: plain list, count and show questions, read by rules, answered with the tools.

It knows no application: managers, fields, choices and relations are learnt, for each question, from what the tools
tell it through the ordinary provider contract.

* ``words`` splits and compares words; ``schema`` holds what the tools said of managers.
* ``reading`` reads a question over known managers; ``placing`` finds where its value words belong. Both are pure.
* ``dialogue`` is the whole conversation with the tools as one generator; ``answers`` words the result.
* ``provider`` drives the generator from the messages of the turn.
"""

from gm_chat_provider_offline.provider import OfflineProvider

__all__ = ["OfflineProvider"]
