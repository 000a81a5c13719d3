"""Codecs between bytes and events: HTTP and server-sent events. No loop logic."""
