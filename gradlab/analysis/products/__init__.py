"""Norms of the products that end in some times: as stacks, compressed, or in machine code."""
