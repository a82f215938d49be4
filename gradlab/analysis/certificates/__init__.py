"""Proofs that hold for every input: one certificate a file."""
