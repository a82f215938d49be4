"""Counts and sizes in words."""

from __future__ import annotations


def counted(count: int, word: str, ending: str = "s") -> str:
    """A number with its noun."""
    return f"{count} {word}" if count == 1 else f"{count} {word}{ending}"


def megabytes(count: int) -> str:
    """A number of bytes."""
    return f"{count / 1e9:.3g} GB" if count >= 1e9 else f"{count / 1e6:.3g} MB"
