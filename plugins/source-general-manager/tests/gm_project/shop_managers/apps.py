from django.apps import AppConfig


class ShopManagersConfig(AppConfig):
    name = "gm_project.shop_managers"
    label = "shop_managers"
    default_auto_field = "django.db.models.BigAutoField"
