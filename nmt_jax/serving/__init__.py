"""The server of `nmt-jax serve`: trained models and metrics as JSON over HTTP, and the page that uses them."""
