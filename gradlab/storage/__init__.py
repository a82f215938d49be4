"""Runs on disk: complete folders of CSV, JSON and arrays; never pickle."""
