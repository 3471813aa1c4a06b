"""The runs of a sweep: which there are, training some at a time, their table."""
