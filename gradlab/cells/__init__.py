"""Recurrent cells: their equations, activations, weights and stacks."""
