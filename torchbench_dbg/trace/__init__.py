"""Tracing: events -> call tree -> layers -> views."""
