"""Pretrained image encoders in Hugging Face's format, ViT and CLIP: features of the patches of images."""

from __future__ import annotations

import dataclasses
import functools
import math
import pathlib
from collections.abc import Sequence
from typing import Any

import flax.traverse_util
import jax
import jax.numpy as jnp
import numpy as np

from nmt_jax.data.readers.images import ImageFiles, open_image
from nmt_jax.errors import UserError
from nmt_jax.models.layers.vision_stack import VisionTransformer
from nmt_jax.pretrained.family import ACTIVATIONS, Family
from nmt_jax.pretrained.model_files import read_json, read_tensors, tensor_names
from nmt_jax.pretrained.reproducibility import exact_products
from nmt_jax.pretrained.weight_names import family_of, read_config, tensor_name

MOST_PIXELS = 1 << 24  # of an image after resizing
VIT_LAYER, CLIP_LAYER = "encoder.layer.{}", "encoder.layers.{}"
SIZES = {
    "image_size": "image_size",
    "patch_size": "patch_size",
    "num_layers": "num_hidden_layers",
    "d_model": "hidden_size",
    "d_ff": "intermediate_size",
    "num_heads": "num_attention_heads",
    "epsilon": "layer_norm_eps",
}
FAMILIES = {
    "vit": Family(
        architecture="ViTModel",
        tensors={
            "class_embedding": "embeddings.cls_token",
            "positions": "embeddings.position_embeddings",
            "projection": "embeddings.patch_embeddings.projection",
            **{
                f"layers_{{}}/self_attention/{part}": f"{VIT_LAYER}.attention.attention.{part}"
                for part in ("query", "key", "value")
            },
            "layers_{}/self_attention/output": f"{VIT_LAYER}.attention.output.dense",
            "layers_{}/self_attention_residual/layer_norm": f"{VIT_LAYER}.layernorm_before",
            "layers_{}/ffn/hidden": f"{VIT_LAYER}.intermediate.dense",
            "layers_{}/ffn/output": f"{VIT_LAYER}.output.dense",
            "layers_{}/ffn_residual/layer_norm": f"{VIT_LAYER}.layernorm_after",
            "final_norm": "layernorm",
        },
        fields=SIZES,
        choices={"hidden_act": ACTIVATIONS},
        module=VisionTransformer,
        constant={"norms": "last"},
        ordinary={"num_channels": 3, "qkv_bias": True},
    ),
    "clip_vision_model": Family(
        architecture="CLIPVisionModel",
        tensors={
            "class_embedding": "embeddings.class_embedding",
            "positions": "embeddings.position_embedding.weight",
            "projection": "embeddings.patch_embedding",
            **{
                f"layers_{{}}/self_attention/{part}": f"{CLIP_LAYER}.self_attn.{name}_proj"
                for part, name in (("query", "q"), ("key", "k"), ("value", "v"), ("output", "out"))
            },
            "layers_{}/self_attention_residual/layer_norm": f"{CLIP_LAYER}.layer_norm1",
            "layers_{}/ffn/hidden": f"{CLIP_LAYER}.mlp.fc1",
            "layers_{}/ffn/output": f"{CLIP_LAYER}.mlp.fc2",
            "layers_{}/ffn_residual/layer_norm": f"{CLIP_LAYER}.layer_norm2",
            "first_norm": "pre_layrnorm",
        },
        fields=SIZES,
        choices={"hidden_act": {**ACTIVATIONS, "quick_gelu": {"activation": "quick_gelu"}}},
        module=VisionTransformer,
        constant={"norms": "first"},
        ordinary={"num_channels": 3},
        defaults={"layer_norm_eps": 1e-5, "hidden_act": "quick_gelu", "num_hidden_layers": 12},
    ),
}


@dataclasses.dataclass(frozen=True)
class Preparation:
    """How the pixels of an image are prepared, as preprocessor_config.json says.

    size: width and height; of one number, the shorter side. crop: sides of the square cut out of the middle, 0 for the
    whole image. resample: Pillow's number of the filter. mean, std: of red, green and blue, from 0 to 1. Raises
    ValueError if one of them is impossible.
    """

    size: tuple[int, ...]
    crop: int
    resample: int
    mean: tuple[float, ...]
    std: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.size) not in (1, 2) or min(self.size) < 1:
            raise ValueError(f"size must have one or two positive numbers, not {list(self.size)}")
        if self.resample not in range(6):
            raise ValueError(f"resample must be from 0 to 5, not {self.resample}")
        if len(self.mean) != 3 or len(self.std) != 3 or not all(0 < one < math.inf for one in self.std):
            raise ValueError("image_mean and image_std must have three numbers, those of image_std above 0")

    def read(self, path: str) -> np.ndarray:
        """An image as float32[H, W, 3]. Raises UserError, naming the file."""
        from PIL import Image

        image = open_image(path)
        size = self.size
        if len(size) == 1:
            shorter = min(image.size)
            size = (int(size[0] * image.width / shorter), int(size[0] * image.height / shorter))
        if math.prod(size) > MOST_PIXELS:
            raise UserError(
                f"{path}: would be resized to {size[0]:,} x {size[1]:,} pixels, which is too large; crop it"
            )
        image = image.resize(size, Image.Resampling(self.resample))
        if self.crop:
            left, top = (image.width - self.crop) // 2, (image.height - self.crop) // 2
            image = image.crop((left, top, left + self.crop, top + self.crop))
        pixels = np.asarray(image, np.float32) / 255
        return (pixels - np.array(self.mean, np.float32)) / np.array(self.std, np.float32)


@dataclasses.dataclass(frozen=True, eq=False)
class VisionEncoder:
    """A pretrained image encoder."""

    model: VisionTransformer
    params: dict[str, Any]
    preparation: Preparation

    @functools.cached_property
    def _states(self) -> Any:
        @jax.jit
        def states(params: Any, patches: jax.Array) -> jax.Array:
            with exact_products(self.model.dtype):
                return jnp.asarray(self.model.apply({"params": params}, patches))

        return states

    def features(self, paths: Sequence[str], batch: int) -> list[np.ndarray]:
        """The rows float32[P, D] of the patches of images, read like text; at most `batch` images.

        Raises UserError, naming the file that cannot be read.
        """
        cut = ImageFiles(self.model.image_size, self.model.patch_size).cut
        rows = [cut(self.preparation.read(path)) for path in paths]
        patches = np.zeros((batch, *rows[0].shape), np.float32)
        patches[: len(rows)] = rows
        return list(np.asarray(self._states(self.params, patches))[: len(rows)])


def load_vision(folder: pathlib.Path, dtype: str = "float32") -> VisionEncoder:
    """Reads config.json, model.safetensors and preprocessor_config.json of a ViT or a CLIP, in Hugging Face's format.

    Of a whole CLIP, the image encoder. dtype: of the matrix products. Raises UserError if a file is missing or damaged,
    or if the files do not belong together.
    """
    path, weights = folder / "config.json", folder / "model.safetensors"
    config = read_json(path)
    if config.get("model_type") == "clip" and isinstance(config.get("vision_config"), dict):
        config = {**config["vision_config"], "model_type": "clip_vision_model"}
    family = family_of(config, FAMILIES, str(path))
    fields = read_config(config, family, str(path))
    try:
        model = VisionTransformer(**fields, dtype=dtype)
    except (TypeError, ValueError) as error:
        raise UserError(f"{path}: {error}") from error
    names = tensor_names(weights)
    if model.num_layers > len(names):  # before a program with that many layers is traced
        raise UserError(f"{path}: {model.num_layers} layers, but {weights.name} has only {len(names)} tensors")
    params = _read_params(weights, family, names, model)
    return VisionEncoder(model, params, _preparation(folder / "preprocessor_config.json", model.image_size))


def _read_params(path: pathlib.Path, family: Family, names: list[str], model: VisionTransformer) -> dict[str, Any]:
    """The parameters of a model. Raises UserError if any are missing, have another shape, or are left over."""
    ending = f"{family.tensors['projection']}.weight"
    prefixes = [name.removesuffix(ending) for name in names if name == ending or name.endswith(f".{ending}")]
    if len(prefixes) != 1:
        raise UserError(
            f"{path}: {len(prefixes)} tensors named {ending}, expected one: not the weights of an image encoder"
        )
    patches = jax.ShapeDtypeStruct((1, model.num_patches, 3 * model.patch_size**2), np.float32)
    flat = flax.traverse_util.flatten_dict(jax.eval_shape(model.init, jax.random.key(0), patches)["params"], sep="/")
    tensors = {name: prefixes[0] + tensor_name(family.tensors, name) for name in flat}
    left = {name for name in names if name.startswith(f"{prefixes[0]}encoder.")} - set(tensors.values())
    if left:
        raise UserError(f"{path}: {min(left)} and {len(left) - 1} more do not belong to the model in config.json")
    values = read_tensors(path, {tensors[name]: _shape(name, leaf.shape, family, model) for name, leaf in flat.items()})
    params = {name: _converted(name, values[tensors[name]]).reshape(leaf.shape) for name, leaf in flat.items()}
    return dict(flax.traverse_util.unflatten_dict(params, sep="/"))


def _shape(name: str, shape: tuple[int, ...], family: Family, model: VisionTransformer) -> tuple[int, ...]:
    """The shape of the tensor of a parameter."""
    if name == "projection/kernel":
        return (model.d_model, 3, model.patch_size, model.patch_size)
    if family is FAMILIES["vit"]:
        shape = {"class_embedding": (1, 1), "positions": (1,)}.get(name, ()) + shape
    return shape[::-1] if name.endswith("/kernel") else shape


def _converted(name: str, value: np.ndarray) -> np.ndarray:
    """A tensor in the order of our parameter: kernels are [in, out], and the pixels of a patch are read like text."""
    if name == "projection/kernel":
        return value.transpose(2, 3, 1, 0)
    return value.T if name.endswith("/kernel") else value


def _preparation(path: pathlib.Path, image_size: int) -> Preparation:
    """How images are prepared. Raises UserError if the file is incomplete, or makes images of another size."""
    content = read_json(path)
    try:
        size, crop = content["size"], content.get("crop_size", image_size)
        if isinstance(size, dict):
            size = [size["shortest_edge"]] if "shortest_edge" in size else [size["width"], size["height"]]
        elif isinstance(size, int):
            size = [size] if content.get("do_center_crop") else [size, size]
        crop = crop["height"] if isinstance(crop, dict) else crop
        found = Preparation(
            tuple(map(int, size)),
            int(crop) if content.get("do_center_crop") else 0,
            int(content.get("resample", 2)),
            tuple(map(float, content["image_mean"])),
            tuple(map(float, content["image_std"])),
        )
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise UserError(f"{path}: not the settings of an image processor: {error}") from None
    made = found.crop or (found.size[0] if len(set(found.size)) == 1 and len(found.size) == 2 else 0)
    if made != image_size:
        raise UserError(f"{path}: makes images of size {content['size']}, but the encoder reads {image_size} pixels")
    return found
