"""Django settings for evaluations of a fixture without a project: ``--settings gm_chat.evals.standalone``."""

from gm_chat.evals.fixtures import FIXTURES, django_settings

globals().update(django_settings(FIXTURES[0]))  # the same for all of them
