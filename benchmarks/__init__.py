"""Speed, measured and never asserted: each script prints one JSON line of figures within one run."""
