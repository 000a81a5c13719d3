"""Models over tables that exist: a car dealership's, and a payment service's. Nothing here creates or changes them."""

from __future__ import annotations

from django.db import models

# --- car dealership ---------------------------------------------------------------------------------------------------


class Car(models.Model):
    """Cars that are or were for sale."""

    make = models.TextField(help_text="manufacturer")
    model = models.TextField()
    year = models.IntegerField(help_text="year of manufacture")
    color = models.TextField()
    vin_number = models.CharField(max_length=17, unique=True)
    engine_type = models.TextField()
    transmission = models.TextField()
    cost = models.DecimalField(max_digits=10, decimal_places=2, help_text="what the dealership paid")
    crtd_ts = models.DateTimeField()

    class Meta:
        managed = False
        db_table = "cars"

    def __str__(self) -> str:
        return f"{self.make} {self.model}"


class Salesperson(models.Model):
    """People who sell cars."""

    first_name = models.TextField()
    last_name = models.TextField()
    email = models.CharField(max_length=255, unique=True)
    phone = models.CharField(max_length=20)
    hire_date = models.DateField()
    termination_date = models.DateField(null=True)
    crtd_ts = models.DateTimeField()

    class Meta:
        managed = False
        db_table = "salespersons"

    def __str__(self) -> str:
        return self.last_name


class Customer(models.Model):
    """People who buy cars."""

    first_name = models.TextField()
    last_name = models.TextField()
    email = models.CharField(max_length=255, unique=True)
    phone = models.CharField(max_length=20)
    address = models.TextField()
    city = models.TextField()
    state = models.TextField()
    zip_code = models.CharField(max_length=10)
    crtd_ts = models.DateTimeField(help_text="when the customer signed up")

    class Meta:
        managed = False
        db_table = "customers"

    def __str__(self) -> str:
        return self.last_name


class Sale(models.Model):
    """Cars sold."""

    car = models.ForeignKey(Car, on_delete=models.DO_NOTHING, related_name="sales")
    salesperson = models.ForeignKey(Salesperson, on_delete=models.DO_NOTHING, related_name="sales")
    customer = models.ForeignKey(Customer, on_delete=models.DO_NOTHING, related_name="sales")
    sale_price = models.DecimalField(max_digits=10, decimal_places=2)
    sale_date = models.DateField()
    crtd_ts = models.DateTimeField()

    class Meta:
        managed = False
        db_table = "sales"

    def __str__(self) -> str:
        return str(self.sale_date)


class InventorySnapshot(models.Model):
    """Whether a car was there on a day."""

    snapshot_date = models.DateField()
    car = models.ForeignKey(Car, on_delete=models.DO_NOTHING, related_name="inventory_snapshots")
    is_in_inventory = models.BooleanField()
    crtd_ts = models.DateTimeField()

    class Meta:
        managed = False
        db_table = "inventory_snapshots"

    def __str__(self) -> str:
        return str(self.snapshot_date)


class PaymentReceived(models.Model):
    """What customers paid for a sale, possibly in several parts."""

    sale = models.ForeignKey(Sale, on_delete=models.DO_NOTHING, related_name="payments")
    payment_date = models.DateField()
    payment_amount = models.DecimalField(max_digits=10, decimal_places=2)
    payment_method = models.TextField()
    crtd_ts = models.DateTimeField()

    class Meta:
        managed = False
        db_table = "payments_received"

    def __str__(self) -> str:
        return str(self.payment_amount)


class PaymentMade(models.Model):
    """What the dealership paid to vendors."""

    vendor_name = models.TextField()
    payment_date = models.DateField()
    payment_amount = models.DecimalField(max_digits=10, decimal_places=2)
    payment_method = models.TextField()
    invoice_number = models.CharField(max_length=50)
    invoice_date = models.DateField()
    due_date = models.DateField()
    crtd_ts = models.DateTimeField()

    class Meta:
        managed = False
        db_table = "payments_made"

    def __str__(self) -> str:
        return self.invoice_number


# --- payment service --------------------------------------------------------------------------------------------------


class User(models.Model):
    """People and businesses with a wallet."""

    uid = models.BigIntegerField(primary_key=True)
    username = models.CharField(max_length=50)
    email = models.CharField(max_length=100)
    phone_number = models.CharField(max_length=20, null=True)
    created_at = models.DateTimeField(help_text="when the user signed up")
    last_login_at = models.DateTimeField(null=True)
    user_type = models.CharField(max_length=20, help_text="individual, business or admin")
    status = models.CharField(max_length=20, help_text="active, inactive, suspended or deleted")
    country = models.CharField(max_length=2, null=True, help_text="two letters")
    address_billing = models.TextField(null=True)
    address_delivery = models.TextField(null=True)
    kyc_status = models.CharField(max_length=20, null=True)
    kyc_verified_at = models.DateTimeField(null=True)

    class Meta:
        managed = False
        db_table = "users"

    def __str__(self) -> str:
        return self.username


class Merchant(models.Model):
    """Businesses that take payments."""

    mid = models.BigIntegerField(primary_key=True)
    name = models.CharField(max_length=100)
    description = models.TextField(null=True)
    website_url = models.CharField(max_length=200, null=True)
    logo_url = models.CharField(max_length=200, null=True)
    created_at = models.DateTimeField(help_text="when the merchant registered")
    country = models.CharField(max_length=2, null=True)
    state = models.CharField(max_length=50, null=True)
    city = models.CharField(max_length=50, null=True)
    postal_code = models.CharField(max_length=20, null=True)
    address = models.TextField(null=True)
    status = models.CharField(max_length=20, help_text="active, inactive or suspended")
    category = models.CharField(max_length=50, null=True)
    sub_category = models.CharField(max_length=50, null=True)
    mcc = models.IntegerField(null=True, help_text="merchant category code")
    contact_name = models.CharField(max_length=100, null=True)
    contact_email = models.CharField(max_length=100, null=True)
    contact_phone = models.CharField(max_length=20, null=True)

    class Meta:
        managed = False
        db_table = "merchants"

    def __str__(self) -> str:
        return self.name


class Coupon(models.Model):
    """Discounts that merchants offer."""

    cid = models.BigIntegerField(primary_key=True)
    merchant = models.ForeignKey(Merchant, on_delete=models.DO_NOTHING, related_name="coupons")
    code = models.CharField(max_length=20)
    description = models.TextField(null=True)
    start_date = models.DateField()
    end_date = models.DateField()
    discount_type = models.CharField(max_length=20)
    discount_value = models.DecimalField(max_digits=10, decimal_places=2)
    min_purchase_amount = models.DecimalField(max_digits=10, decimal_places=2, null=True)
    max_discount_amount = models.DecimalField(max_digits=10, decimal_places=2, null=True)
    redemption_limit = models.IntegerField(null=True)
    status = models.CharField(max_length=20)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField(null=True)

    class Meta:
        managed = False
        db_table = "coupons"

    def __str__(self) -> str:
        return self.code


class Transaction(models.Model):
    """Money that went from one wallet to another. Type 0 is a user, type 1 a merchant."""

    txid = models.AutoField(primary_key=True)
    sender = models.ForeignKey(
        User,
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        related_name="sent_transactions",
        help_text="where sender_type is 0",
    )
    sender_type = models.IntegerField(choices=[(0, "user"), (1, "merchant")])
    receiver = models.ForeignKey(
        Merchant,
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        related_name="received_transactions",
        help_text="where receiver_type is 1",
    )
    receiver_type = models.IntegerField(choices=[(0, "user"), (1, "merchant")])
    amount = models.DecimalField(max_digits=10, decimal_places=2)
    status = models.CharField(max_length=20, help_text="pending, success, failed or refunded")
    type = models.CharField(max_length=20, help_text="credit or debit")
    description = models.TextField(null=True)
    coupon = models.ForeignKey(
        Coupon, on_delete=models.DO_NOTHING, null=True, db_constraint=False, related_name="transactions"
    )
    created_at = models.DateTimeField()
    completed_at = models.DateTimeField(null=True)
    transaction_ref = models.CharField(max_length=36)
    gateway_name = models.CharField(max_length=50, null=True)
    gateway_ref = models.CharField(max_length=50, null=True)
    device_id = models.CharField(max_length=50, null=True)
    ip_address = models.CharField(max_length=50, null=True)
    user_agent = models.TextField(null=True)

    class Meta:
        managed = False
        db_table = "wallet_transactions_daily"

    def __str__(self) -> str:
        return self.transaction_ref


class UserBalance(models.Model):
    """Balances of users over time."""

    pk = models.CompositePrimaryKey("user_id", "updated_at")
    user = models.ForeignKey(User, on_delete=models.DO_NOTHING, db_constraint=False, related_name="balances")
    balance = models.DecimalField(max_digits=10, decimal_places=2)
    updated_at = models.DateTimeField()

    class Meta:
        managed = False
        db_table = "wallet_user_balance_daily"

    def __str__(self) -> str:
        return str(self.balance)


class MerchantBalance(models.Model):
    """Balances of merchants over time."""

    pk = models.CompositePrimaryKey("merchant_id", "updated_at")
    merchant = models.ForeignKey(Merchant, on_delete=models.DO_NOTHING, db_constraint=False, related_name="balances")
    balance = models.DecimalField(max_digits=10, decimal_places=2)
    updated_at = models.DateTimeField()

    class Meta:
        managed = False
        db_table = "wallet_merchant_balance_daily"

    def __str__(self) -> str:
        return str(self.balance)


class Notification(models.Model):
    """Messages to users."""

    user = models.ForeignKey(User, on_delete=models.DO_NOTHING, related_name="notifications")
    message = models.TextField()
    type = models.CharField(max_length=50, help_text="transaction, promotion, security or general")
    status = models.CharField(max_length=20, help_text="unread, read or archived")
    created_at = models.DateTimeField()
    read_at = models.DateTimeField(null=True)
    device_type = models.CharField(max_length=10, null=True)
    device_id = models.CharField(max_length=36, null=True)
    action_url = models.TextField(null=True)

    class Meta:
        managed = False
        db_table = "notifications"

    def __str__(self) -> str:
        return self.message


class UserSession(models.Model):
    """Times that users spent in an app."""

    pk = models.CompositePrimaryKey("user_id", "session_start_ts")
    user = models.ForeignKey(User, on_delete=models.DO_NOTHING, db_constraint=False, related_name="sessions")
    session_start_ts = models.DateTimeField()
    session_end_ts = models.DateTimeField(null=True)
    device_type = models.CharField(max_length=10, null=True)
    device_id = models.CharField(max_length=36, null=True)

    class Meta:
        managed = False
        db_table = "user_sessions"

    def __str__(self) -> str:
        return str(self.session_start_ts)


class UserSetting(models.Model):
    """Settings of users, as they were on a day."""

    pk = models.CompositePrimaryKey("user_id", "snapshot_date")
    user = models.ForeignKey(User, on_delete=models.DO_NOTHING, db_constraint=False, related_name="settings")
    snapshot_date = models.DateField()
    tx_limit_daily = models.DecimalField(max_digits=10, decimal_places=2, null=True)
    tx_limit_monthly = models.DecimalField(max_digits=10, decimal_places=2, null=True)
    membership_status = models.IntegerField(null=True)
    password_hash = models.CharField(max_length=255, null=True)
    api_key = models.CharField(max_length=255, null=True)
    verified_devices = models.TextField(null=True)
    verified_ips = models.TextField(null=True)
    mfa_enabled = models.BooleanField(null=True)
    marketing_opt_in = models.BooleanField(null=True)
    created_at = models.DateTimeField()

    class Meta:
        managed = False
        db_table = "user_setting_snapshot"

    def __str__(self) -> str:
        return str(self.snapshot_date)
