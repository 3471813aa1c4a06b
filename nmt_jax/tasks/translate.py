"""Translation and other sequence-to-sequence tasks: parallel text, or features and text, in; translations out."""

import functools
import inspect
import itertools
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from ml_collections import ConfigDict

from metrics_jax import BLEU
from nmt_jax.data.batching.batches import Batches, PairLayout
from nmt_jax.data.batching.epochs import Batch
from nmt_jax.data.batching.packed_pairs import PackedPairs
from nmt_jax.data.prepared.cache import cache_directory
from nmt_jax.data.prepared.difficulty import of_sources
from nmt_jax.data.prepared.engine import Engine, this_process
from nmt_jax.data.prepared.mixture import Mixture
from nmt_jax.data.prepared.parallel import PreparedCorpus, open_filtered, prepare
from nmt_jax.data.prepared.verdicts import Verdicts
from nmt_jax.data.readers import sources
from nmt_jax.data.readers.parallel_text import SYNTHETIC, ParallelText, open_text
from nmt_jax.data.readers.source_reader import SourceReader
from nmt_jax.data.vocabulary.stand_in import StandIn
from nmt_jax.data.vocabulary.translation_lexicon import Lexicon
from nmt_jax.data.vocabulary.vocab import EOS, PAD, Vocab
from nmt_jax.errors import UserError
from nmt_jax.losses import teacher_forcing
from nmt_jax.losses.coverage import coverage_loss
from nmt_jax.losses.cross_entropy import smoothed_cross_entropy
from nmt_jax.losses.ctc import ctc_loss
from nmt_jax.losses.doubly_stochastic import doubly_stochastic
from nmt_jax.losses.hard_attention import hard_attention
from nmt_jax.losses.minimum_risk import MinimumRisk
from nmt_jax.losses.r_drop import symmetric_divergence
from nmt_jax.losses.step import Step
from nmt_jax.models.layers.features import Source, batch_source, reduction_of, source_mask
from nmt_jax.models.layers.hidden_words import hide_source_words
from nmt_jax.models.layers.spec_augment import spec_augment
from nmt_jax.models.registry import model_class
from nmt_jax.platforms import compiled
from nmt_jax.progress import track
from nmt_jax.tasks.objectives import token_loss
from nmt_jax.tasks.task import BatchSource, Task, in_order
from nmt_jax.tasks.vocab_files import load_or_train_vocab
from nmt_jax.translation.requests import Hypothesis
from nmt_jax.translation.translator import Translator

AUGMENTATION, SECOND_PASS = 1, 2  # folded into the key of a step
HARD_ATTENTION = {"positions": 3, "averaging": 4}  # the same, of its random streams


class PairTask(Task):
    """A task on pairs of a source and a target, such as translation: their vocabularies and batches."""

    def __init__(self, config: ConfigDict, workdir: Path, mesh: Mesh) -> None:
        super().__init__(config, workdir, mesh)
        self.engine: Engine = this_process  # prepares the corpora
        self.num_sources = len(sources.languages(config.data.source))  # of each line, separated by tabs
        self.reader = SourceReader.of(config.data)
        self._fields = inspect.signature(model_class(config.model_name)).parameters
        if config.vocab.get("lexicon") and "lexicon" not in self._fields:
            raise UserError(
                f"config.vocab.lexicon: model_name={config.model_name!r} does not use a lexicon; leave it empty"
            )

    @functools.cached_property
    def vocabularies(self) -> tuple[Vocab, Vocab]:
        """Source and target vocabulary: given, or trained on the corpus; then read from the workdir.

        A source that is not text has no vocabulary; that of the target takes its place.
        """
        settings = self.config.vocab
        both: dict[str, int | None] = {"joint": None} if settings.joint else {"source": 0, "target": 1}
        vocabularies = []
        for name, side in (both if self.reader.has_text else {"target": 1}).items():
            model = (settings.target_model if side == 1 else "") or settings.source_model
            texts = functools.partial(self._training_texts, side)
            path = self.workdir / "vocab" / f"{name}.model"
            cache = cache_directory(self.config.data), functools.partial(self._identity, name)
            vocabularies.append(load_or_train_vocab(path, model, settings, texts, cache))
        return vocabularies[0], vocabularies[-1]

    @functools.cached_property
    def _filtered_text(self) -> tuple[ParallelText, Verdicts | None]:
        """The training text, and which of its pairs are dropped."""
        return open_filtered(self.config.data, "train", self.engine)

    def _training_texts(self, side: int | None) -> Iterator[str]:
        """The training texts of one side, 0 the source and 1 the target; of both sides if None."""
        corpus, verdicts = self._filtered_text
        pairs = verdicts.kept_of_all(corpus) if verdicts else corpus
        for source, target in track(pairs, "reading for the vocabulary"):
            if side != 1:
                yield from self.reader.texts(source)
            if side != 0:
                yield target

    def _identity(self, name: str) -> list[Any]:
        """What decides the training texts of the vocabulary `name`."""
        corpus, verdicts = self._filtered_text
        return [corpus.fingerprint(), list(map(str, verdicts.filters)) if verdicts else [], self.num_sources, name]

    def model_sizes(self) -> dict[str, Any]:
        source, target = self.vocabularies
        sizes: dict[str, Any] = {"source_vocab_size": len(source), "target_vocab_size": len(target)}
        if self.lexicon:
            sizes["lexicon"] = self.lexicon
        if "num_sources" in self._fields:
            sizes["num_sources"] = self.num_sources
        if "source_columns" in self._fields and any(self.reader.columns):
            sizes["source_columns"] = self.reader.columns
        return sizes

    @functools.cached_property
    def model(self) -> Any:
        model = super().model
        source, target = self.vocabularies
        if getattr(model, "copying", "none") != "none" and source.fingerprint != target.fingerprint:
            raise UserError("config.model.copying needs one vocabulary for both sides: set config.vocab.joint=true")
        return model

    @functools.cached_property
    def num_unknown(self) -> int:
        """Number of ids for words that only the source line of a pair contains."""
        return getattr(self.model, "num_unknown", 0)

    @functools.cached_property
    def lexicon(self) -> Lexicon | None:
        """The translation table in the workdir; at the first start, the useful entries of the file `vocab.lexicon`."""
        original, path = self.config.vocab.get("lexicon"), self.workdir / "vocab" / "lexicon.tsv"
        if not original:
            return None
        lexicon = Lexicon.read(path if path.exists() else original, *self.vocabularies)
        if not path.exists():
            lexicon.save(path, *self.vocabularies)
        return lexicon

    # Training

    @functools.cached_property
    def train_corpus(self) -> PreparedCorpus | Mixture:
        """The training pairs as ids, those of `data.synthetic` included."""
        real, data = self._prepare("train"), self.config.data
        if not data.synthetic:
            return real
        return Mixture(real, self._prepare(SYNTHETIC), data.upsample, data.synthetic_ratio)

    @functools.cached_property
    def dev_corpus(self) -> PreparedCorpus:
        """The development pairs as ids."""
        return self._prepare("dev")

    def _prepare(self, split: str) -> PreparedCorpus:
        return prepare(self.config.data, split, self.vocabularies, self.num_unknown, self.engine)

    def summary(self) -> list[tuple[str, str]]:
        source, target = self.vocabularies
        sizes = f"{len(source)} joint" if self.config.vocab.joint else f"{len(source)} source, {len(target)} target"
        if not self.reader.has_text:
            sizes = f"{len(target)} target"
        return [
            ("training pairs", self.train_corpus.report),
            ("development pairs", self.dev_corpus.report),
            ("vocabulary", f"{sizes} ({self.config.vocab.algorithm})"),
            *([("lexicon", self.lexicon.report)] if self.lexicon else []),
        ]

    def batches(self, steps: int) -> BatchSource:
        alpha = self.config.vocab.sampling_alpha
        batches: Batches | PackedPairs
        if self.packing:
            options = {"batch_tokens": self.config.train.batch_tokens, "seed": self.config.seed, "steps": steps}
            batches = PackedPairs(self.train_corpus, share=self._train_rows, sampling_alpha=alpha, **options)
        else:
            batches = self._train_batches(self.train_corpus, steps, self.layout, sampling_alpha=alpha)
        return self._with_curriculum(batches, functools.partial(of_sources, self.train_corpus))

    @functools.cached_property
    def layout(self) -> PairLayout:
        """How pairs fill a batch."""
        return PairLayout(self.reader)

    def dummy_batch(self, shape: tuple[int, ...]) -> Batch:
        """A batch of shape (rows, S, T)."""
        rows, source_length, target_length = shape
        batch = self.reader.fill([self.reader.dummy(source_length)] * rows, (rows, source_length))
        batch["target"] = np.full((rows, target_length), EOS, np.int32)
        return batch | ({f"{side}_packing": np.ones_like(batch[side]) for side in batch} if self.packing else {})

    def stand_in(self) -> None:
        size, joint = self.config.vocab.size, self.config.vocab.joint
        self._assume(vocabularies=(StandIn(size), StandIn(size, "" if joint else "target")), lexicon=None)

    def row_lengths(self, share: float) -> tuple[int, ...]:
        length = math.ceil((1.0 if self.packing else share) * self.config.data.max_length)
        return length, length

    def num_tokens(self, shape: tuple[int, ...]) -> int:
        """Target tokens."""
        return shape[0] * shape[2]

    def init(self, rng: jax.Array) -> Any:
        batch = self.dummy_batch((1, 2, 2))
        return self.model.init(rng, batch_source(batch), batch["target"])["params"]


class Translate(PairTask):
    """The translation task of one workdir."""

    unit = "tokens"
    next_command = "nmt-jax translate --workdir={workdir} < source.txt > hypothesis.txt"

    def __init__(self, config: ConfigDict, workdir: Path, mesh: Mesh) -> None:
        super().__init__(config, workdir, mesh)
        self.measures = ("loss", "perplexity", "bleu") if config.eval.max_segments else ("loss", "perplexity")

    def model_sizes(self) -> dict[str, Any]:
        return super().model_sizes() | ({"ctc": True} if self.config.loss.ctc else {})

    @property
    def on_host(self) -> tuple[str, ...]:
        return ("loss.risk.metric",) if self.config.loss.risk.metric else ()

    def loss_fn(self, params: Any, batch: dict[str, jax.Array], step: Step | None) -> tuple[jax.Array, jax.Array]:
        """The loss that `config.loss` describes in training, else the cross-entropy of the target: (sum, weight)."""
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

    @property
    def _augments(self) -> bool:
        """Whether rows of features are masked in training."""
        settings = self.config.data.spec_augment
        return not self.reader.only_text and bool(settings.frequency_masks or settings.time_masks)

    def _cross_entropy(
        self, params: Any, batch: dict[str, jax.Array], step: Step | None
    ) -> tuple[jax.Array, jax.Array]:
        """Cross-entropy of the target tokens, EOS included: (sum, weight).

        In training, with label smoothing, as the weighted mean with the loss of CTC, and with the losses of attention.
        With R-Drop, the mean of two passes, and their divergence: half of equation 4 of Liang et al. (2021).
        """
        source = batch_source(batch)
        if step and self._augments:
            source = spec_augment(jax.random.fold_in(step.rng, AUGMENTATION), source, **self.config.data.spec_augment)
        if step and (rate := self.config.data.source_word_dropout):
            source = hide_source_words(jax.random.fold_in(step.rng, AUGMENTATION), source, rate)
        logits, loss, weight = self._one_pass(params, source, batch, step)
        alpha = self.config.loss.r_drop
        if step and alpha:
            other = step._replace(rng=jax.random.fold_in(step.rng, SECOND_PASS))
            others, other_loss, _ = self._one_pass(params, source, batch, other)
            weights = (batch["target"] != PAD).astype(jnp.float32)
            loss = (loss + other_loss + alpha * symmetric_divergence(logits, others, weights)) / 2
        return loss, weight

    def _one_pass(
        self, params: Any, source: Source, batch: dict[str, jax.Array], step: Step | None
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        """The logits float[B, T, V] and the (sum, weight) of the losses of one pass."""
        options: dict[str, Any] = {}
        if step:
            streams = {name: jax.random.fold_in(step.rng, number) for name, number in HARD_ATTENTION.items()}
            options |= {"train": True, "rngs": {"dropout": step.rng, "teacher_forcing": step.rng, **streams}}
            ratio = teacher_forcing.ratio(self.config.loss.teacher_forcing, step.number)
            if ratio is not None:
                if "teacher_forcing" not in inspect.signature(type(self.model).__call__).parameters:
                    raise UserError(
                        f"config.loss.teacher_forcing: model_name={self.config.model_name!r} cannot read its own "
                        "predictions; use model_name='rnn'"
                    )
                options["teacher_forcing"] = ratio
        if "target_packing" in batch:
            options["packing"] = (batch["source_packing"], batch["target_packing"])
        logits, out = self.model.apply({"params": params}, source, batch["target"], **options)
        weights = (batch["target"] != PAD).astype(jnp.float32)
        smoothing = self.config.loss.label_smoothing if step else 0.0
        if smoothing and self.num_unknown:
            raise UserError(
                "config.loss.label_smoothing: a copying model gives words of other source lines probability 0; set "
                "config.loss.label_smoothing=0 or config.model.max_unknown=0"
            )
        loss, weight = token_loss(logits, out, batch["target"], weights, smoothing, self.model.dtype, self._row_shards)
        if step:
            loss = self._with_auxiliary(loss, logits, out, source, batch["target"], weights)
        return logits, loss, weight

    def _with_auxiliary(
        self,
        loss: jax.Array,
        logits: jax.Array,
        out: dict[str, Any],
        source: Source,
        target: jax.Array,
        weights: jax.Array,
    ) -> jax.Array:
        """The sum of losses float32[] with those of the encoder states (CTC) and of the attention."""
        settings = self.config.loss
        mask = source_mask(source, reduction_of(self.model))
        if "ctc" in out:
            loss = (1 - settings.ctc) * loss + settings.ctc * jnp.sum(ctc_loss(out["ctc"], mask, target))
        if settings.coverage:
            loss += settings.coverage * coverage_loss(out["attended"], weights)
        if settings.doubly_stochastic:
            (attention,) = out["cross"]
            places = mask.reshape(len(attention), self.num_sources, -1)
            loss += settings.doubly_stochastic * doubly_stochastic(attention, places, weights)
        if self.config.model.get("attention") == "hard":
            log_probs = -smoothed_cross_entropy(logits, target, 0.0)
            loss += hard_attention(out["attended"], log_probs, weights, **settings.hard_attention)
        return loss

    @functools.cached_property
    def dev_batches(self) -> Batches:
        """One epoch of the development pairs."""
        return self._dev_batches(self.dev_corpus, self.layout)

    def evaluate(self, params: Any) -> dict[str, float]:
        """Return `dev/loss` (nats per target token, without smoothing), `dev/perplexity` and `dev/bleu`."""
        settings = self.config.eval
        loss, weight = self._totals(self._eval_loss, params, in_order(self.dev_batches))
        measures = {"dev/loss": loss / weight, "dev/perplexity": float(np.exp(loss / weight))}
        if settings.max_segments:
            pairs = itertools.islice(open_text(self.config.data, "dev"), settings.max_segments)  # none is filtered out
            sources, references = zip(*pairs, strict=True)
            best = self.translate(params, sources, beam_size=settings.beam_size)
            measures["dev/bleu"] = BLEU()([hypotheses[0].text for hypotheses in best], references).score
        return measures

    # Translation

    @functools.cached_property
    def translator(self) -> Translator:
        """Translates text with this model; parameters are passed to each call."""
        return Translator(self.config, [self.model], self.vocabularies, self.mesh, evaluator=self.evaluator)

    def translate(self, params: Any, sentences: Sequence[str], **options: Any) -> list[list[Hypothesis]]:
        """Return the n best hypotheses of each sentence.

        options: changes to the search that `config.decode` describes, see `Translator.search`.
        """
        return self.translator.translate((params,), sentences, self.translator.search(**options))

    @compiled()
    def _attention_weights(self, params: Any, source: Source, target: jax.Array) -> dict[str, Any]:
        """The compiler removes all computation that the weights do not need."""
        out = self.model.apply({"params": params}, source, target)[1]
        return {kind: out[kind] for kind in ("encoder", "decoder", "cross") if kind in out}

    def attention(self, params: Any, source: str, target: str) -> dict[str, Any]:
        """Return all attention weights of one pair of sentences.

        The keys are `source_pieces` and `target_pieces`, and `encoder`, `decoder`, `cross`: float[L, H, ·, ·], as far
        as the model has them. Row t of `decoder` and `cross` is the step that predicts target piece t. Several sources
        are concatenated. A source that is not text is a path, and its pieces are the numbers of the encoder's states.
        `pictures`: each `Picture` among the sources, if any.
        """
        source_vocab, target_vocab = self.vocabularies
        unknown = source_vocab.unknown(source, self.num_unknown)
        example = self.reader.features(
            self.reader.read(source, functools.partial(source_vocab.encode, unknown=unknown))
        )
        target_ids = [*target_vocab.encode(target, unknown), EOS]
        lengths = self.reader.lengths(example)
        # Padded to a power of two, so that sentences of similar length share a compiled program.
        width = 1 << (int(max(lengths)) - 1).bit_length()
        batch = self.reader.fill([example], (1, width))
        target_batch = np.full((1, 1 << (len(target_ids) - 1).bit_length()), PAD, np.int32)
        target_batch[0, : len(target_ids)] = target_ids
        out = self.evaluator.fetch(self._attention_weights(params, batch_source(batch), target_batch))
        lengths = -(-lengths // self.translator.encoder.reduction)
        if self.num_sources > 1:
            real = np.arange(-(-width // self.translator.encoder.reduction)) < lengths[:, None]  # [N, S]
            for kind in filter(out.get, ("encoder", "cross")):
                out[kind] = [_of_all_sources(heads, real, kind) for heads in out[kind]]
        result: dict[str, Any] = {"source_pieces": self.translator.encoder.pieces(example, unknown)}
        result["target_pieces"] = target_vocab.pieces(target_ids, unknown)
        if pictures := self.reader.pictures(source, lengths.tolist()):
            result["pictures"] = pictures
        for kind in filter(out.get, ("encoder", "decoder", "cross")):
            queries = sum(lengths) if kind == "encoder" else len(target_ids)
            keys = len(target_ids) if kind == "decoder" else sum(lengths)
            result[kind] = np.concatenate(out[kind])[..., :queries, :keys]
        return result


def _of_all_sources(heads: np.ndarray, real: np.ndarray, kind: str) -> np.ndarray:
    """The weights of the P real places, real bool[N, S], of several sources, as if they were one.

    Of a recurrent decoder, float[1, N, T, S] -> [1, 1, T, P]; of a Transformer, whose sources follow each other,
    float[1, H, T, N S] -> [1, H, T, P], and of its encoder both axes.
    """
    if heads.shape[-1] == real.shape[1]:
        return np.swapaxes(heads, 1, 2)[:, :, real][:, None]
    chosen = heads[..., real.ravel()]
    return chosen[:, :, real.ravel()] if kind == "encoder" else chosen
