"""Certified norms of small chains in machine code; imports Numba, and so only on use."""
