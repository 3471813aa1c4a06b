"""Search and sampling over a step function and a cache, without knowledge of model classes."""
