"""gm-chat's rate limit, counted in Redis."""
