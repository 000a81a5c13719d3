"""Planned reads: a plan, bounded evidence, exact arithmetic, and an answer that rests on the evidence.

One module for each idea; they hold decisions and take what they need from outside, so that none knows Django, a
transport or a provider's SDK. ``gm_chat.wiring`` composes them. (Specification: "Planned read orchestration".)
"""
