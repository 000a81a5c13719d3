"""The demo's routes: the chat as any project places it, the demo's login, and Django's admin."""

from django.contrib import admin
from django.urls import include, path

from gm_chat.demo import views

__all__ = ["urlpatterns"]

urlpatterns = [
    path("", views.home, name="home"),
    path("demo/login/", views.log_in, name="demo-login"),
    path("chat/", include("gm_chat.urls")),
    path("admin/", admin.site.urls),
]
