"""Running networks: sequences in, trajectories out."""
