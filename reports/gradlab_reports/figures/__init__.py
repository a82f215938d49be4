"""One figure a file: ``plot_x(frame, *, ax=None) -> Axes`` draws a table of the run folder."""
