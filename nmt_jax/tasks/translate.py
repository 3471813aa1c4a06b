"""Sequence to sequence: parallel text in, translations out."""

import functools
import importlib
import inspect
import itertools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from ml_collections import ConfigDict

from metrics_jax import BLEU
from nmt_jax import config as configs
from nmt_jax import losses, sharding
from nmt_jax.counting import counted
from nmt_jax.data import sources
from nmt_jax.data.batches import Batches, Pairs, bucketed
from nmt_jax.data.corpora import open_text
from nmt_jax.data.lexicon import Lexicon
from nmt_jax.data.lines import split_long
from nmt_jax.data.prepared import PreparedCorpus, prepare
from nmt_jax.data.vocab import BOS, EOS, PAD, UNK, Vocab
from nmt_jax.decoding.beam import IMPOSSIBLE, beam_search
from nmt_jax.errors import UserError
from nmt_jax.tasks import Batch, Step, teacher_forcing


class Hypothesis(NamedTuple):
    """One translation: its text, its log-probability over the length penalty, and its pieces."""

    text: str
    score: float
    pieces: list[str]


def _join(parts: list[list[Hypothesis]]) -> list[Hypothesis]:
    """The n-th best hypotheses of the parts of a line as the n-th best of the line."""
    if len(parts) == 1:
        return parts[0]
    return [
        best[0]._replace(
            text=" ".join(part.text for part in best if part.text),
            score=sum(part.score for part in best),
            pieces=[piece for part in best for piece in part.pieces],
        )
        for best in zip(*parts, strict=True)
    ]


def _takes(model: type, option: str) -> bool:
    """Whether a model can be told this."""
    return option in inspect.signature(model).parameters


class Translate:
    """The translation task (`tasks.Task`) of one workdir; corpora are opened only when training or evaluation asks."""

    unit = "tokens"
    next_command = "nmt-jax translate --workdir={workdir} < source.txt > hypothesis.txt"

    def __init__(self, config: ConfigDict, workdir: Path, mesh: Mesh) -> None:
        self.config = config
        self.workdir = Path(workdir)
        self.mesh = mesh
        if self.num_sources > 1 and not _takes(self._model_class, "num_sources"):
            raise UserError(
                f"config.data.source: {config.data.source!r} are several sources, but "
                f"model_name={config.model_name!r} reads one; use model_name='rnn'"
            )
        if config.vocab.get("lexicon") and not _takes(self._model_class, "lexicon"):
            raise UserError(f"config.vocab.lexicon: model_name={config.model_name!r} uses none; leave it empty")

    @property
    def measures(self) -> tuple[str, ...]:
        """`dev/loss` …; BLEU where `eval.max_segments` asks for translations."""
        return ("loss", "perplexity", "bleu") if self.config.eval.max_segments else ("loss", "perplexity")

    @property
    def num_sources(self) -> int:
        """How many sources a line has, parted by tabs where they are several."""
        return len(sources.languages(self.config.data.source))

    @functools.cached_property
    def vocabularies(self) -> tuple[Vocab, Vocab]:
        """Source and target vocabulary: the workdir's, else the given, else trained on the corpus and saved."""
        settings, data = self.config.vocab, self.config.data
        folder = self.workdir / "vocab"
        names = ("joint",) if settings.joint else ("source", "target")
        given = (settings.source_model, settings.target_model or settings.source_model)
        vocabularies = []
        for side, name in enumerate(names):
            path = folder / f"{name}.model"
            if not path.exists():
                if given[side]:
                    vocab = Vocab.load(given[side])
                else:
                    texts = (
                        text
                        for source, target in counted(open_text(data, "train"), "reading for the vocabulary")
                        for number, texts in enumerate((sources.split(source, self.num_sources), [target]))
                        if settings.joint or number == side
                        for text in texts
                    )
                    vocab = Vocab.train(
                        texts,
                        size=settings.size,
                        algorithm=settings.algorithm,
                        byte_fallback=settings.byte_fallback,
                    )
                folder.mkdir(parents=True, exist_ok=True)
                vocab.save(path)
            vocabularies.append(Vocab.load(path))
        return vocabularies[0], vocabularies[-1]

    @property
    def _model_class(self) -> Any:
        return importlib.import_module(f"nmt_jax.models.{self.config.model_name}").Model

    @functools.cached_property
    def model(self) -> Any:
        """The linen module that `config.model_name` and `config.model` describe; its fields are the schema."""
        source, target = self.vocabularies
        sizes = {"source_vocab_size": len(source), "target_vocab_size": len(target)}
        kind = self._model_class
        given: dict[str, Any] = {"lexicon": self.lexicon} if self.lexicon else {}
        if _takes(kind, "num_sources"):
            given["num_sources"] = self.num_sources
        model = configs.build_model(kind, self.config.model, **sizes, **given)
        if getattr(model, "copying", "none") != "none" and source.fingerprint != target.fingerprint:
            raise UserError("config.model.copying needs one vocabulary for both sides: set config.vocab.joint=true")
        return model

    @functools.cached_property
    def num_unknown(self) -> int:
        """How many words that only a source line knows its numbers may name."""
        return getattr(self.model, "num_unknown", 0)

    @functools.cached_property
    def lexicon(self) -> Lexicon | None:
        """The workdir's table, else the one that `vocab.lexicon` names, whose entries that count are saved."""
        named, path = self.config.vocab.get("lexicon"), self.workdir / "vocab" / "lexicon.tsv"
        if not named:
            return None
        if path.exists():
            return Lexicon.read(path, *self.vocabularies)
        lexicon = Lexicon.read(named, *self.vocabularies)
        lexicon.save(path, *self.vocabularies)
        return lexicon

    # Training

    @functools.cached_property
    def train_corpus(self) -> PreparedCorpus:
        """The training pairs as piece numbers."""
        return prepare(self.config.data, "train", self.vocabularies, self.num_unknown)

    @functools.cached_property
    def dev_corpus(self) -> PreparedCorpus:
        """The development pairs as piece numbers."""
        return prepare(self.config.data, "dev", self.vocabularies, self.num_unknown)

    def summary(self) -> list[tuple[str, str]]:
        """Rows for the start table: corpora and vocabularies."""
        source, target = self.vocabularies
        sizes = f"{len(source)} joint" if self.config.vocab.joint else f"{len(source)} source, {len(target)} target"
        return [
            ("training pairs", self.train_corpus.report),
            ("development pairs", self.dev_corpus.report),
            ("vocabulary", f"{sizes} ({self.config.vocab.algorithm})"),
            *([("lexicon", self.lexicon.report)] if self.lexicon else []),
        ]

    def batches(self, steps: int) -> Batches:
        """The training batches of `steps` steps."""
        config = self.config
        return Batches(
            self.train_corpus,
            batch_tokens=config.train.batch_tokens,
            num_buckets=config.data.num_buckets,
            multiple_of=self._rows_multiple(config.train.accumulate),
            seed=config.seed,
            steps=steps,
            process_index=jax.process_index(),
            process_count=jax.process_count(),
            sampling_alpha=config.vocab.sampling_alpha,
            layout=Pairs(self.num_sources),
        )

    def dummy_batch(self, shape: tuple[int, ...]) -> Batch:
        """(rows, S, T) -> a full batch."""
        rows, source_length, target_length = shape
        several = (self.num_sources,) if self.num_sources > 1 else ()
        return {
            "source": np.full((rows, *several, source_length), EOS, np.int32),
            "target": np.full((rows, target_length), EOS, np.int32),
        }

    def init(self, rng: jax.Array) -> Any:
        """-> parameters."""
        batch = self.dummy_batch((1, 2, 2))
        return self.model.init(rng, batch["source"], batch["target"])["params"]

    def loss_fn(self, params: Any, batch: dict[str, jax.Array], step: Step | None) -> tuple[jax.Array, jax.Array]:
        """Cross-entropy of the target pieces (EOS included), label-smoothed when training -> (sum, weight)."""
        options: dict[str, Any] = {}
        if step:
            options |= {"train": True, "rngs": {"dropout": step.rng, "teacher_forcing": step.rng}}
            truth = teacher_forcing.ratio(self.config.loss.teacher_forcing, step.number)
            if truth is not None:
                if "teacher_forcing" not in inspect.signature(type(self.model).__call__).parameters:
                    raise UserError(f"config.loss.teacher_forcing: {self.config.model_name} reads true pieces only")
                options["teacher_forcing"] = truth
        logits, out = self.model.apply({"params": params}, batch["source"], batch["target"], **options)
        weights = (batch["target"] != PAD).astype(jnp.float32)
        smoothing = self.config.loss.label_smoothing if step else 0.0
        if smoothing and self.num_unknown:
            raise UserError(
                "config.loss.label_smoothing: a copying model gives the numbers of other lines' words probability 0; "
                "set it to 0, or config.model.max_unknown to 0"
            )
        if "output_kernel" not in out:
            loss = losses.smoothed_cross_entropy(logits, batch["target"], smoothing)
            return jnp.sum(loss * weights), jnp.sum(weights)
        # The same loss without ever holding all logits, which jit then does not compute.
        return losses.cross_entropy(
            out["hidden"], out["output_kernel"], batch["target"], weights, smoothing, self.model.dtype
        )

    @functools.cached_property
    def dev_batches(self) -> Batches:
        """One epoch of the development pairs."""
        config = self.config
        return Batches(
            self.dev_corpus,
            batch_tokens=config.eval.batch_tokens,
            num_buckets=config.data.num_buckets,
            multiple_of=self._rows_multiple(),
            layout=Pairs(self.num_sources),
        )

    def _rows_multiple(self, accumulate: int = 1) -> int:
        """What the rows of a batch are a multiple of: at least 8, so that 1, 2, 4, 8 devices see the same batches."""
        return math.lcm(8, self.mesh.shape["data"] * accumulate)

    @functools.cached_property
    def _dev_pairs(self) -> list[tuple[str, str]]:
        """The first `eval.max_segments` development pairs as text, none left out."""
        return list(itertools.islice(open_text(self.config.data, "dev"), self.config.eval.max_segments))

    @functools.cached_property
    def _eval_loss(self) -> Any:
        return jax.jit(functools.partial(self.loss_fn, step=None))

    def evaluate(self, params: Any) -> dict[str, float]:
        """-> `dev/loss` (nats a target piece, not smoothed), `dev/perplexity`, `dev/bleu`."""
        settings, batches = self.config.eval, self.dev_batches
        total = weight = 0.0
        for number in range(len(batches)):
            loss, count = self._eval_loss(params, sharding.shard_batch(batches[number], self.mesh))
            total, weight = total + float(loss), weight + float(count)
        measures = {"dev/loss": total / weight, "dev/perplexity": float(np.exp(total / weight))}
        if settings.max_segments:
            sources, references = zip(*self._dev_pairs, strict=True)
            best = self.translate(params, sources, beam_size=settings.beam_size)
            measures["dev/bleu"] = BLEU()([hypotheses[0].text for hypotheses in best], references).score
        return measures

    # Translating

    @functools.cached_property
    def search(self) -> Any:
        """One compiled program a shape, beam size and number of results."""

        def search(
            params: Any,
            source: jax.Array,
            limits: jax.Array,
            alpha: jax.Array,
            beam_size: int,
            n_best: int,
            max_length: int,
        ) -> tuple[jax.Array, jax.Array]:
            def apply(*args: Any, method: str) -> Any:
                return self.model.apply({"params": params}, *args, method=method)

            def step(tokens: jax.Array, cache: Any) -> tuple[jax.Array, Any]:
                logits, cache = apply(tokens, cache, method="decode_step")
                log_probs = jax.nn.log_softmax(logits.astype(jnp.float32))
                never = jnp.zeros(log_probs.shape[1]).at[jnp.array([PAD, UNK, BOS])].set(IMPOSSIBLE)
                return log_probs + never[None], cache

            encoded = apply(source, method="encode")
            return beam_search(
                step,
                apply(encoded, source, beam_size, max_length, method="init_cache"),
                beam_size=beam_size,
                n_best=n_best,
                max_length=max_length,
                limits=limits,
                length_penalty_alpha=alpha,
                bos=BOS,
                eos=EOS,
            )

        return jax.jit(search, static_argnames=("beam_size", "n_best", "max_length"))

    def translate(
        self,
        params: Any,
        sentences: Sequence[str],
        *,
        beam_size: int,
        n_best: int = 1,
        length_penalty: float | None = None,
        max_length_ratio: float | None = None,
        max_length_offset: int | None = None,
        batch_tokens: int | None = None,
    ) -> list[list[Hypothesis]]:
        """Sentences -> for each, in their order, the n best hypotheses, best first; an empty line gives an empty one.

        What is not given is taken from `config.decode`; length_penalty is Wu's alpha. A sentence of `data.max_length`
        pieces or more, longer than anything the model was trained on, is translated in parts; one of several sources,
        which have no parts in common, is not. UserError for a line of another number of sources.
        """
        decode = self.config.decode
        alpha = decode.length_penalty if length_penalty is None else length_penalty
        ratio = decode.max_length_ratio if max_length_ratio is None else max_length_ratio
        offset = decode.max_length_offset if max_length_offset is None else max_length_offset
        source_vocab, target_vocab = self.vocabularies
        if self.num_sources > 1:
            split = [[line] for line in sentences]
        else:
            split = [split_long(line, source_vocab.encode, self.config.data.max_length) for line in sentences]
        unknown = [source_vocab.unknown(part, self.num_unknown) for parts in split for part in parts]
        ids = [
            sources.encode(part, self.num_sources, functools.partial(source_vocab.encode, unknown=words))
            for part, words in zip(itertools.chain.from_iterable(split), unknown, strict=True)
        ]
        filled = [number for number, pieces in enumerate(ids) if any(piece != EOS for piece in pieces)]
        results = [[Hypothesis("", 0.0, [])] * n_best for _ in ids]
        budget = batch_tokens or self.config.eval.batch_tokens // beam_size
        for numbers, batch in bucketed(
            [ids[number] for number in filled],
            batch_tokens=budget,
            multiple_of=self.mesh.shape["data"],
            num_sources=self.num_sources,
        ):
            source = batch["source"]
            # The limit hangs on the sentence's own length, so that a translation never depends on its neighbours.
            lengths = (source != PAD).sum(axis=-1).reshape(len(source), -1).max(axis=1)
            limits = np.where(lengths > 0, np.ceil(ratio * lengths) + offset, 0).astype(np.int32)
            tokens, scores = self.search(
                params,
                *sharding.shard_batch((source, limits), self.mesh),
                np.float32(alpha),
                beam_size=beam_size,
                n_best=n_best,
                max_length=int(np.ceil(ratio * source.shape[-1])) + offset,
            )
            tokens, scores = np.asarray(tokens), np.asarray(scores)
            for row, number in enumerate(numbers):
                words = unknown[filled[number]]
                results[filled[number]] = [
                    Hypothesis(
                        target_vocab.decode(best, words),
                        float(score),
                        target_vocab.pieces(best[~np.isin(best, (PAD, EOS))], words),
                    )
                    for best, score in zip(tokens[row], scores[row], strict=True)
                ]
        translated = iter(results)
        return [_join([next(translated) for _ in parts]) for parts in split]

    def attention(self, params: Any, source: str, target: str) -> dict[str, Any]:
        """All attention weights of one pair: its pieces, and `encoder`, `decoder`, `cross` float[L, H, ·, ·].

        Row t of `decoder` and `cross` is the step that predicts target piece t. Several sources are one beside the
        other, in one head.
        """
        source_vocab, target_vocab = self.vocabularies
        unknown = source_vocab.unknown(source, self.num_unknown)
        encode = functools.partial(source_vocab.encode, unknown=unknown)
        source_ids = [*sources.encode(source, self.num_sources, encode), EOS]
        target_ids = [*target_vocab.encode(target, unknown), EOS]
        lengths = sources.lengths(source_ids)
        source_batch = sources.fill([source_ids], (1, max(lengths)), self.num_sources)
        _, out = self.model.apply({"params": params}, source_batch, np.array([target_ids], np.int32))
        if self.num_sources > 1 and "cross" in out:
            real = np.arange(max(lengths)) < lengths[:, None]  # [N, S]
            out["cross"] = [np.swapaxes(heads, 1, 2)[:, :, real][:, None] for heads in out["cross"]]
        return {
            "source_pieces": source_vocab.pieces(source_ids, unknown),
            "target_pieces": target_vocab.pieces(target_ids, unknown),
            **{kind: np.concatenate(out[kind]) for kind in ("encoder", "decoder", "cross") if kind in out},
        }
