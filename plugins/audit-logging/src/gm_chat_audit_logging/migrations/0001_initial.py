"""The table of audit events."""

import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="AuditRecord",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created", models.DateTimeField(db_index=True, default=django.utils.timezone.now)),
                ("event_type", models.CharField(max_length=40)),
                ("turn_id", models.CharField(blank=True, db_index=True, max_length=64)),
                ("actor", models.CharField(blank=True, db_index=True, max_length=200)),
                ("event", models.TextField()),
            ],
            options={
                "verbose_name": "audit event",
                "ordering": ["-id"],
            },
        ),
    ]
