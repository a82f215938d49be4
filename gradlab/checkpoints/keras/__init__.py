"""Keras files: HDF5 in two layouts, alone or inside a zip, read without Keras."""
