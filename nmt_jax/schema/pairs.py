"""Keys of the tasks on pairs of a source and a target: translation and retrieval."""

from typing import Any

from nmt_jax.schema.key import Key, choice, count, rate, share, width
from nmt_jax.schema.shared_keys import (
    AVERAGE,
    BYTE_FALLBACK,
    CACHE,
    CURRICULUM,
    DECODE_DTYPES,
    LABEL_SMOOTHING,
    MAX_ROW,
    NUM_BUCKETS,
    SAMPLE_LINES,
    SPEC_AUGMENT,
    SUBWORDS,
    VOCAB_SIZE,
    eval_tokens,
    max_row,
    measure,
)

TRANSLATE: dict[str, Any] = {
    "data": {
        "corpus": choice("grammar", "Corpus.", "grammar", "text", "tfds", "vqa", "scenes", "speech"),
        "directory": Key("", "text: folder of TRAIN.SOURCE, TRAIN.TARGET, ...; tfds: its data_dir; vqa: its files."),
        "kind": Key(
            "text",
            'Kind of all sources, or of each, as in "text,image": text, features, image or audio. Each line of a '
            "file of the last three names an array, an image or a recording.",
        ),
        "feature_width": width(0, "Width of the rows of data.kind=features.", low=0),
        "image_size": count(64, "Width and height that images are resized to.", "pixels", high=4096),
        "patch_size": count(8, "Width and height of a patch; the patches are the rows.", "pixels", high=512),
        "mels": count(80, "Mel filters, the width of the rows of data.kind=audio.", high=128),
        "spec_augment": SPEC_AUGMENT,
        "source_word_dropout": rate(
            0.0, "Fraction of the words of source texts that are <unk> in training (Caglayan et al., 2019)."
        ),
        "name": Key(
            "",
            "tfds: data set name, such as wmt14_translate/de-en; scenes: ambiguous = with objects whose English "
            "name has two German translations, questions = with questions and answers.",
        ),
        "source": Key("en", 'Source language; "en,fr" = two sources, separated by tabs when translating.'),
        "target": Key(
            "de",
            "Target language. grammar: en and de in one order or the other; scenes: en or de, or answer; speech: en.",
        ),
        "train": Key("train", "File name without the language suffix, or TFDS split."),
        "dev": Key("val", "File name without the language suffix, or TFDS split."),
        "test": Key("test", "File name without the language suffix, or TFDS split."),
        "size": count(20_000, "grammar, scenes, speech: number of training pairs."),
        "synthetic": Key(
            "",
            "Additional training pairs: the prefix of text files such as PREFIX.en and PREFIX.de, as "
            "nmt-jax augment --output=PREFIX writes them; empty = none.",
        ),
        "synthetic_ratio": Key(
            0.0, "Synthetic pairs per training pair, at most, before data.upsample; 0 = all.", low=0, high=1e6
        ),
        "upsample": count(1, "How often each training pair occurs beside synthetic ones.", high=10_000),
        "max_length": max_row(
            128, "Maximum length per side, including end of sentence; longer pairs are skipped.", low=2
        ),
        "filters": Key(
            [],
            "Drop training pairs that are duplicates, identical (on both sides), or beyond a threshold: "
            "length_ratio:4 (in characters), letters:0.5 (share of letters).",
        ),
        "num_buckets": NUM_BUCKETS,
        "packing": Key(
            False,
            "Fill training rows of max_length tokens with several pairs that do not see each other, instead of "
            "num_buckets shapes; model transformer.",
        ),
        "curriculum": CURRICULUM,
        "cache": CACHE,
    },
    "vocab": {
        "algorithm": SUBWORDS,
        "size": VOCAB_SIZE,
        "joint": Key(True, "Share one vocabulary between source and target."),
        "byte_fallback": BYTE_FALLBACK,
        "sample_lines": SAMPLE_LINES,
        "symbols": Key([], "Strings that are one piece each, such as the tag <BT>."),
        "source_model": Key(
            "",
            "Existing SentencePiece .model of the source, and of the target if joint or target_model is empty; empty = "
            "train one.",
        ),
        "target_model": Key(
            "", "Existing SentencePiece .model of the target, with joint=false; empty = source_model, or train one."
        ),
        "lexicon": Key("", "File of SOURCE, TARGET, PROBABILITY rows that bias the output of model rnn."),
        "sampling_alpha": Key(
            0.0,
            "A new segmentation for each use: unigram, the smaller the more random (Kudo, 2018); bpe, probability of "
            "leaving out a merge (Provilkov et al., 2020); 0 = off.",
            low=0,
            high=1000,
        ),
    },
    "loss": {
        "label_smoothing": rate(0.1, LABEL_SMOOTHING.help),
        "r_drop": Key(
            0.0,
            "Weight alpha of the divergence of two passes with different dropout (Liang et al., 2021); 0 = one pass.",
            low=0,
            high=1000,
        ),
        "ctc": rate(
            0.0,
            "Weight of connectionist temporal classification of the encoder states (Graves et al., 2006); the rest "
            "is cross-entropy; for one source of features or recordings.",
        ),
        "coverage": Key(
            0.0, "Weight of repeated attention to the same words (See et al., 2017); 0 = off.", low=0, high=1000
        ),
        "doubly_stochastic": Key(
            0.0,
            "Weight lambda of the sum over source places of (1 - their attention in all steps)^2 (Xu et al., 2015, "
            "equation 14); model rnn; 0 = off.",
            low=0,
            high=1000,
        ),
        "hard_attention": {  # for model.attention="hard"
            "reward": Key(
                1.0,
                "Weight lambda_r of the reward for the position that was drawn (Xu et al., 2015, equation 12).",
                low=0,
                high=1000,
            ),
            "entropy": Key(0.002, "Weight lambda_e of the entropy of the attention (equation 12).", low=0, high=1000),
        },
        "teacher_forcing": {  # rate of reference pieces as decoder input; below 1 for recurrent decoders only
            "schedule": choice(
                *("constant", "Course of the rate of reference pieces as decoder input."),
                *("constant", "linear", "exponential", "inverse_sigmoid"),
            ),
            "start": share(1.0, "First rate; below 1 for recurrent decoders only."),
            "end": share(1.0, "Last rate; below 1 for recurrent decoders only."),
            "decay_steps": count(
                1000,
                "k in the share of start - end that is left at step i: linear max(0, 1 - i/k), exponential exp(-i/k), "
                "inverse_sigmoid k / (k + exp(i/k)).",
                "steps",
            ),
        },
        "risk": {  # minimum-risk training (Shen et al., 2016)
            "metric": Key("", "Metric of candidates against the reference, such as chrf; empty = off."),
            "num_samples": count(8, "Sampled candidates per line; the reference is added to them.", high=10_000),
            "temperature": Key(1.0, "Sampling temperature.", above=0, high=1000),
            "sharpness": Key(0.005, "Exponent alpha on the candidate probabilities.", above=0, high=1000),
            "share": Key(1.0, "Weight of the risk in the loss; the rest is cross-entropy.", above=0, high=1),
        },
    },
    "eval": {
        "max_segments": count(
            500, "Number of first dev sentences to translate for dev/bleu; 0 = only the loss.", low=0
        ),
        "beam_size": count(1, "Beam size of these translations.", high=10_000),
        "batch_tokens": eval_tokens(8192, "target tokens"),
    },
    "decode": {
        "beam_size": count(5, "Beam size.", high=10_000),
        "length_penalty": Key(
            0.6, "Exponent of the length penalty (Wu et al., 2016, equation 14); 0 = by probability.", low=0, high=1000
        ),
        "max_length_ratio": Key(
            1.5, "At most max_length_ratio * source pieces + max_length_offset target pieces.", low=0, high=1000
        ),
        "max_length_offset": count(10, "See max_length_ratio.", "pieces", low=0, high=MAX_ROW),
        "dtype": choice(
            *("model", "Type of the products of a trained model; model = that of model.dtype, int8 = transformer."),
            *DECODE_DTYPES,
        ),
        "average": AVERAGE,
    },
    "train": {"early_stopping_metric": measure("bleu", "bleu", "loss", "perplexity")},
}

RETRIEVAL: dict[str, Any] = {
    "data": {
        name: key
        for name, key in TRANSLATE["data"].items()
        if name not in ("packing", "spec_augment", "source_word_dropout")
    },
    "vocab": {name: key for name, key in TRANSLATE["vocab"].items() if name != "lexicon"},
    "eval": {
        "max_pairs": count(1000, "Dev pairs to search among.", high=100_000),
        "batch_tokens": eval_tokens(8192, "tokens"),
    },
    "train": {
        "early_stopping_metric": measure("recall_1", "recall_1", "recall_5", "recall_10", "loss"),
    },
}
