"""Pages that tell of a run or of a sweep: what `nmt-jax report` writes."""
