"""Managers over all tables; not in ``chat_managers.py``, so that they exist for their own tests alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gm_chat.managers import expose
from testproject.defog import models

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.db.models import Model

    from gm_chat.managers import ModelManager

__all__ = ["MANAGERS", "MODELS"]

MODELS: Mapping[str, tuple[type[Model], ...]] = {
    "car_dealership": (
        *(models.Car, models.Salesperson, models.Customer, models.Sale, models.InventorySnapshot),
        *(models.PaymentReceived, models.PaymentMade),
    ),
    "ewallet": (
        *(models.User, models.Merchant, models.Coupon, models.Transaction, models.UserBalance, models.MerchantBalance),
        *(models.Notification, models.UserSession, models.UserSetting),
    ),
}
"""By database; each after those that it refers to."""

MANAGERS: Mapping[str, list[type[ModelManager]]] = {
    name: [expose(model, mutations=[]) for model in tables] for name, tables in MODELS.items()
}
