"""Evaluations: does a model with these tools, prompts and plugins give right answers, and at what cost?

``python -m gm_chat.evals`` runs datasets of questions through the product's own turns and judges what came out.
(Specification: "Installed evaluation CLI".)
"""
