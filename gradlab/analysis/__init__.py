"""What is measured of a network, one measurement a file."""
