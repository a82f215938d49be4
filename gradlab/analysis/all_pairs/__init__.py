"""Norms of the products between all pairs of times, by halves of the sequence."""
