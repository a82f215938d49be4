"""Frozen records that leave the analysis, one a file; each turns into a table with to_frame."""
