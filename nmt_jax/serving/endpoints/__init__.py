"""The addresses of the JSON interface, one module each."""

from nmt_jax.serving.endpoints import attention, explain, fill, generate, runs, score, text_attention, translate

MODULES = (translate, attention, score, explain, generate, fill, text_attention)
ENDPOINTS = {module.ENDPOINT.path: module.ENDPOINT for module in MODULES}
ENDPOINTS |= {endpoint.path: endpoint for endpoint in (runs.TABLE, runs.CURVES)}
