"""Closed forms and published values, computed on the machine of whoever runs it."""
