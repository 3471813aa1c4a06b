"""The addresses of the JSON interface, one module each."""

from nmt_jax.serving.endpoints import attention, fill, generate, score, text_attention, translate

ENDPOINTS = {
    module.ENDPOINT.path: module.ENDPOINT for module in (translate, attention, generate, fill, text_attention, score)
}
