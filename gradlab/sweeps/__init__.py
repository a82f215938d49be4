"""Grids of networks, each analyzed on its own, over any executor."""
