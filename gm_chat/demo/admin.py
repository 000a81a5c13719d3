"""The demo's data in Django's admin: the place to see with one's own eyes what the chat answers."""

from django.contrib import admin

from gm_chat.demo import models

admin.site.register(
    [
        models.Material,
        models.Supplier,
        models.Part,
        models.Offer,
        models.Customer,
        models.Project,
        models.Assembly,
        models.BomLine,
        models.Warehouse,
        models.StockLevel,
        models.Order,
        models.OrderLine,
    ]
)
