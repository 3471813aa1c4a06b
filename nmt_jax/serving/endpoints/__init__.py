"""The addresses of the JSON interface, one module each."""

from nmt_jax.serving.endpoints import attention, explain, runs, score, translate

ENDPOINTS = {module.ENDPOINT.path: module.ENDPOINT for module in (translate, attention, score, explain)}
ENDPOINTS |= {endpoint.path: endpoint for endpoint in (runs.TABLE, runs.CURVES)}
