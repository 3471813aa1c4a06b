"""Sequence to sequence: parallel text in, translations out."""

import functools
import inspect
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from ml_collections import ConfigDict

from metrics_jax import BLEU
from nmt_jax import config as configs
from nmt_jax.data.batching.batches import Batches, Pairs
from nmt_jax.data.batching.epochs import Batch
from nmt_jax.data.prepared.parallel import PreparedCorpus, prepare
from nmt_jax.data.readers import sources
from nmt_jax.data.readers.parallel_text import open_text
from nmt_jax.data.vocabulary.translation_lexicon import Lexicon
from nmt_jax.data.vocabulary.vocab import EOS, PAD, Vocab
from nmt_jax.distributed import sharding
from nmt_jax.errors import UserError
from nmt_jax.losses import cross_entropy as losses
from nmt_jax.losses import teacher_forcing
from nmt_jax.losses.minimum_risk import MinimumRisk
from nmt_jax.losses.step import Step
from nmt_jax.models.registry import model_class
from nmt_jax.progress import track
from nmt_jax.translation.translator import Hypothesis, Translator


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
        self.mesh, self.local_mesh = mesh, sharding.local(mesh)
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
                        for source, target in track(open_text(data, "train"), "reading for the vocabulary")
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
        return model_class(self.config.model_name)

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
            share=sharding.share(self.mesh, config.train.accumulate),
            seed=config.seed,
            steps=steps,
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

    def warm_start(self, params: Any) -> Any:
        """All of them are learned here."""
        return params

    def loss_fn(self, params: Any, batch: dict[str, jax.Array], step: Step | None) -> tuple[jax.Array, jax.Array]:
        """-> (sum, weight): when training as `config.loss` has it, otherwise the cross-entropy of the target pieces."""
        risk = self.config.loss.risk
        if step is None or not risk.metric:
            return self._cross_entropy(params, batch, step)
        expected, weight = self.minimum_risk(params, batch, step)
        if risk.share == 1:
            return expected, weight
        return risk.share * expected + (1 - risk.share) * self._cross_entropy(params, batch, step)[0], weight

    @functools.cached_property
    def minimum_risk(self) -> MinimumRisk:
        """The loss that `config.loss.risk` describes."""
        return MinimumRisk(self.translator, self.config.loss.risk, self.mesh)

    def _cross_entropy(
        self, params: Any, batch: dict[str, jax.Array], step: Step | None
    ) -> tuple[jax.Array, jax.Array]:
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
            share=sharding.share(self.local_mesh),
            layout=Pairs(self.num_sources),
        )

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
            loss, count = self._eval_loss(params, sharding.shard_batch(batches[number], self.local_mesh))
            total, weight = total + float(loss), weight + float(count)
        measures = {"dev/loss": total / weight, "dev/perplexity": float(np.exp(total / weight))}
        if settings.max_segments:
            sources, references = zip(*self._dev_pairs, strict=True)
            best = self.translate(params, sources, beam_size=settings.beam_size)
            measures["dev/bleu"] = BLEU()([hypotheses[0].text for hypotheses in best], references).score
        return measures

    # Translating

    @functools.cached_property
    def translator(self) -> Translator:
        """What turns lines into lines; parameters are given to each call."""
        return Translator(self.config, [self.model], self.vocabularies, self.local_mesh)

    def translate(self, params: Any, sentences: Sequence[str], **options: Any) -> list[list[Hypothesis]]:
        """Sentences -> the n best hypotheses of each, by the search of `config.decode` but for these options."""
        return self.translator.translate((params,), sentences, self.translator.search(**options))

    @functools.cached_property
    def _watch(self) -> Any:
        """What the model looks at; the compiler leaves out what is not asked for."""
        kinds = ("encoder", "decoder", "cross")

        def watch(params: Any, source: jax.Array, target: jax.Array) -> dict[str, Any]:
            out = self.model.apply({"params": params}, source, target)[1]
            return {kind: out[kind] for kind in kinds if kind in out}

        return jax.jit(watch)

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
        # Padded, so that sentences of about one length share a compiled program.
        width = 1 << (int(max(lengths)) - 1).bit_length()
        source_batch = sources.fill([source_ids], (1, width), self.num_sources)
        target_batch = np.full((1, 1 << (len(target_ids) - 1).bit_length()), PAD, np.int32)
        target_batch[0, : len(target_ids)] = target_ids
        out = jax.device_get(self._watch(params, source_batch, target_batch))
        if self.num_sources > 1 and "cross" in out:
            real = np.arange(width) < lengths[:, None]  # [N, S]
            out["cross"] = [np.swapaxes(heads, 1, 2)[:, :, real][:, None] for heads in out["cross"]]
        source_length, target_length = int(sum(lengths)), len(target_ids)
        sizes = {
            "encoder": (source_length, source_length),
            "decoder": (target_length, target_length),
            "cross": (target_length, source_length),
        }
        return {
            "source_pieces": source_vocab.pieces(source_ids, unknown),
            "target_pieces": target_vocab.pieces(target_ids, unknown),
            **{
                kind: np.concatenate(out[kind])[..., :queries, :keys]
                for kind, (queries, keys) in sizes.items()
                if kind in out
            },
        }
