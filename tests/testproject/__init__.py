"""The Django project that the tests run in."""
