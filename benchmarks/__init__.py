"""Scripts that measure speed and quality; each prints its figures, and none asserts a time."""
