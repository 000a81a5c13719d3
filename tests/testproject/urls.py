"""No routes of its own: what answers under the chat's URL is what gm_chat installed."""

from django.urls import URLPattern, URLResolver

urlpatterns: list[URLPattern | URLResolver] = []
