"""A plain PyTorch training loop of the Transformer or BERT of `accelerator_training.py`, which starts it.

On the first GPU, or on the CPU without one: torch.compile, scaled_dot_product_attention (flash attention where torch
has it), autocast to bfloat16, fused AdamW, full rows of random tokens.
"""

import json
import sys
import time
from types import SimpleNamespace

import torch
from torch import Tensor, nn
from torch.nn import functional

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
BOS, FIRST = 2, 5
SMOOTHING, PREDICTED = 0.1, 0.15


class Attention(nn.Module):
    """Multi-head attention; queries from x, keys and values from y."""

    def __init__(self, width: int, heads: int, dropout: float, bias: bool) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.query, self.key, self.value, self.output = (nn.Linear(width, width, bias=bias) for _ in range(4))

    def forward(self, x: Tensor, y: Tensor, causal: bool = False) -> Tensor:
        q, k, v = (
            part(z).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part, z in ((self.query, x), (self.key, y), (self.value, y))
        )
        dropout = self.dropout if self.training else 0.0
        z = functional.scaled_dot_product_attention(q, k, v, dropout_p=dropout, is_causal=causal)
        return self.output(z.transpose(1, 2).flatten(2))


class Layer(nn.Module):
    """A post-norm layer; with `cross`, it also attends to the encoder."""

    def __init__(self, s: SimpleNamespace, activation: nn.Module, bias: bool, epsilon: float, cross: bool = False):
        super().__init__()
        attentions = [Attention(s.d_model, s.num_heads, s.attention_dropout, bias) for _ in range(1 + cross)]
        self.attentions = nn.ModuleList(attentions)
        self.ffn = nn.Sequential(nn.Linear(s.d_model, s.d_ff), activation, nn.Linear(s.d_ff, s.d_model))
        self.norms = nn.ModuleList([nn.LayerNorm(s.d_model, epsilon) for _ in range(2 + cross)])
        self.dropout = nn.Dropout(s.dropout)

    def forward(self, x: Tensor, encoded: Tensor | None = None, causal: bool = False) -> Tensor:
        x = self.norms[0](x + self.dropout(self.attentions[0](x, x, causal)))
        if encoded is not None:
            x = self.norms[1](x + self.dropout(self.attentions[1](x, encoded)))
        return self.norms[-1](x + self.dropout(self.ffn(x)))


class Translator(nn.Module):
    """The Transformer of Vaswani et al. (2017) with one table for source, target and output; returns the loss."""

    def __init__(self, s: SimpleNamespace) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(s.vocabulary, s.d_model) * s.d_model**-0.5)
        angles = torch.arange(s.length)[:, None] / 10000 ** (torch.arange(0, s.d_model, 2) / s.d_model)
        self.register_buffer("positions", torch.cat([angles.sin(), angles.cos()], 1))
        layers = s.num_encoder_layers, s.num_decoder_layers
        self.encoder, self.decoder = (
            nn.ModuleList([Layer(s, nn.ReLU(), bias=False, epsilon=1e-6, cross=cross) for _ in range(count)])
            for count, cross in zip(layers, (False, True), strict=True)
        )
        self.dropout, self.scale = nn.Dropout(s.dropout), s.d_model**0.5

    def embed(self, ids: Tensor) -> Tensor:
        return self.dropout(functional.embedding(ids, self.table) * self.scale + self.positions)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        x, y = self.embed(source), self.embed(functional.pad(target[:, :-1], (1, 0), value=BOS))
        for layer in self.encoder:
            x = layer(x)
        for layer in self.decoder:
            y = layer(y, x, causal=True)
        logits = functional.linear(y, self.table)
        return functional.cross_entropy(logits.flatten(0, 1), target.flatten(), label_smoothing=SMOOTHING)


class Bert(nn.Module):
    """BERT (Devlin et al., 2019) with both pretraining heads; returns the loss."""

    def __init__(self, s: SimpleNamespace) -> None:
        super().__init__()
        sizes = s.vocabulary, max(s.length, 512), 2
        self.words, self.positions, self.segments = (nn.Embedding(size, s.d_model) for size in sizes)
        self.norm, self.dropout = nn.LayerNorm(s.d_model, 1e-12), nn.Dropout(s.dropout)
        self.layers = nn.ModuleList(Layer(s, nn.GELU(), bias=True, epsilon=1e-12) for _ in range(s.num_layers))
        self.pooler, self.next = nn.Linear(s.d_model, s.d_model), nn.Linear(s.d_model, 2)
        self.transform, self.transform_norm = nn.Linear(s.d_model, s.d_model), nn.LayerNorm(s.d_model, 1e-12)
        self.bias = nn.Parameter(torch.zeros(s.vocabulary))
        for table in (self.words, self.positions, self.segments):
            nn.init.normal_(table.weight, std=0.02)

    def forward(self, ids: Tensor, segments: Tensor, asked: Tensor, labels: Tensor, follows: Tensor) -> Tensor:
        x = self.words(ids) + self.segments(segments) + self.positions.weight[: ids.shape[1]]
        x = self.dropout(self.norm(x))
        for layer in self.layers:
            x = layer(x)
        predicted = x.gather(1, asked[:, :, None].expand(-1, -1, x.shape[2]))
        predicted = self.transform_norm(functional.gelu(self.transform(predicted)))
        logits = functional.linear(predicted, self.words.weight, self.bias)
        loss = functional.cross_entropy(logits.flatten(0, 1), labels.flatten())
        return loss + functional.cross_entropy(self.next(self.pooler(x[:, 0]).tanh()), follows)


def batch(s: SimpleNamespace) -> tuple[Tensor, ...]:
    """Random tokens on the device."""

    def draw(low: int, high: int, *shape: int) -> Tensor:
        return torch.randint(low, high, shape, device=DEVICE)

    if s.task == "translate":
        return tuple(draw(FIRST, s.vocabulary, s.rows, s.length) for _ in range(2))
    segments = torch.arange(2, device=DEVICE).repeat_interleave(s.length // 2)[None].repeat(s.rows, 1)
    asked = round(PREDICTED * s.length)
    places = torch.rand(s.rows, s.length, device=DEVICE).argsort(1)[:, :asked].sort(1).values
    labels = draw(FIRST, s.vocabulary, s.rows, asked)
    return draw(FIRST, s.vocabulary, s.rows, s.length), segments, places, labels, draw(0, 2, s.rows)


def wait() -> None:
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def main() -> None:
    s = SimpleNamespace(**json.loads(sys.argv[2]))
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    model = (Translator if s.task == "translate" else Bert)(s).to(DEVICE).train()
    rates = {"lr": 1e-4, "betas": (s.beta1, s.beta2), "eps": s.epsilon, "weight_decay": s.weight_decay}
    optimizer = torch.optim.AdamW(model.parameters(), **rates, fused=True)
    run, given = torch.compile(model), batch(s)

    def step() -> Tensor:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(DEVICE, torch.bfloat16, enabled=s.dtype == "bfloat16"):
            loss = run(*given)
        loss.backward()
        if s.clip_norm:
            nn.utils.clip_grad_norm_(model.parameters(), s.clip_norm)
        optimizer.step()
        return loss.detach()

    for _ in range(1 + s.warm_up):
        step()
    wait()
    seconds = []
    for _ in range(s.rounds):
        start = time.perf_counter()
        for _ in range(s.steps):
            loss = step()
        wait()
        seconds.append((time.perf_counter() - start) / s.steps)
    figures = {"seconds": seconds, "loss": float(loss), "torch": torch.__version__}
    figures |= {"parameters": sum(one.numel() for one in model.parameters())}
    print(json.dumps(figures | {"memory": torch.cuda.max_memory_allocated() if DEVICE == "cuda" else 0}))


if __name__ == "__main__":
    main()
