"""Keys that each task adds to a config: `data`, `vocab`, `loss`, `eval`, `decode` and others.

`corpus="grammar"` selects the embedded synthetic corpus, which needs no files. Help that starts with "grammar:",
"text:", "files:" or "tfds:" is about keys that apply only to that value of `data.corpus`. All text files may be plain
or gzipped (`.gz`).
"""

from typing import Any

from nmt_jax.schema.key import Key, choice, count, layers, rate, share, width
from nmt_jax.schema.shared_keys import (
    AVERAGE,
    BYTE_FALLBACK,
    CACHE,
    CURRICULUM,
    DECODE_DTYPES,
    DOCUMENTS,
    ENCODER,
    FOLDS,
    LABEL_SMOOTHING,
    LINES,
    MAX_ROW,
    NUM_BUCKETS,
    SAMPLE_LINES,
    SMALLEST_VOCAB,
    SPEC_AUGMENT,
    SUBWORDS,
    TAG_MEASURES,
    TAGGED,
    TOKENIZER_HELP,
    VOCAB_MODEL,
    VOCAB_SIZE,
    directory,
    eval_tokens,
    max_row,
    measure,
    train_tokens,
)

TASKS: dict[str, dict[str, Any]] = {
    "translate": {
        "data": {
            "corpus": choice("grammar", "Corpus.", "grammar", "text", "tfds", "vqa", "scenes", "speech"),
            "directory": Key(
                "", "text: folder of TRAIN.SOURCE, TRAIN.TARGET, ...; tfds: its data_dir; vqa: its files."
            ),
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
            "name": Key(
                "",
                "tfds: data set name, such as wmt14_translate/de-en; scenes: ambiguous = with objects whose English "
                "name has two German translations, questions = with questions and answers.",
            ),
            "source": Key("en", 'Source language; "en,fr" = two sources, separated by tabs when translating.'),
            "target": Key(
                "de",
                "Target language. grammar: en and de in one order or the other; scenes: en or de, or answer; "
                "speech: en.",
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
            "source_model": VOCAB_MODEL,
            "target_model": VOCAB_MODEL,
            "lexicon": Key("", "File of SOURCE, TARGET, PROBABILITY rows that bias the output of model rnn."),
            "sampling_alpha": Key(0.0, "Subword regularization (Kudo, 2018); 0 = off.", low=0, high=1000),
        },
        "loss": {
            "label_smoothing": rate(0.1, LABEL_SMOOTHING.help),
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
            "teacher_forcing": {  # rate of reference pieces as decoder input; below 1 for recurrent decoders only
                "schedule": choice(
                    *("constant", "Course of the rate of reference pieces as decoder input."),
                    *("constant", "linear", "exponential", "inverse_sigmoid"),
                ),
                "start": share(1.0, "First rate; below 1 for recurrent decoders only."),
                "end": share(1.0, "Last rate; below 1 for recurrent decoders only."),
                "decay_steps": count(1000, "Larger values decay more slowly.", "steps"),
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
            "max_segments": count(500, "Dev sentences to translate for dev/bleu; 0 = compute the loss only.", low=0),
            "beam_size": count(1, "Beam size of these translations.", high=10_000),
            "batch_tokens": eval_tokens(8192, "target tokens"),
        },
        "decode": {
            "beam_size": count(5, "Beam size.", high=10_000),
            "length_penalty": Key(0.6, "Wu et al. (2016), equation 14.", low=0, high=1000),
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
    },
    "language_model": {
        "data": {
            **LINES,
            "block_length": max_row(64, "Length of a training block.", "tokens", low=2),
            "packing": Key(
                False,
                "Read every line on its own, also in evaluation: rows of block_length tokens hold several lines that "
                "do not see each other; model gpt.",
            ),
            "carry_state": Key(
                False,
                "Each row of a batch continues that of the batch before, from its last state, also in "
                "evaluation; model rnn_lm.",
            ),
            "curriculum": CURRICULUM,
            "cache": CACHE,
        },
        "vocab": {
            "algorithm": SUBWORDS,
            "size": VOCAB_SIZE,
            "byte_fallback": BYTE_FALLBACK,
            "sample_lines": SAMPLE_LINES,
            "model": VOCAB_MODEL,
        },
        "loss": {
            "label_smoothing": LABEL_SMOOTHING,
            "activation_penalty": Key(
                0.0,
                "Weight alpha of the mean squared output of the last layer (Merity et al., 2018); model rnn_lm.",
                low=0,
                high=1000,
            ),
            "temporal_penalty": Key(
                0.0,
                "Weight beta of the mean squared difference of successive outputs (Merity et al., 2018); model rnn_lm.",
                low=0,
                high=1000,
            ),
        },
        "eval": {
            "context": count(
                32, "Minimum number of preceding tokens for each prediction, where available.", "tokens", low=0
            ),
            "batch_tokens": eval_tokens(8192, "tokens"),
        },
        "train": {"early_stopping_metric": measure("perplexity", "perplexity", "loss")},
    },
    "classify": {
        "data": {
            "corpus": choice("grammar", "Corpus: grammar (English or German) or files.", "grammar", "files"),
            "directory": directory("files"),
            "train": Key("train.tsv", "files: .tsv or .jsonl."),
            "dev": Key("", "files: development file; empty = hold out one fold of the training file."),
            **FOLDS,
            "label": Key("label", "Column or field of the label."),
            "texts": Key(["text"], "Columns or fields of the text; in JSONL also lists of sentences."),
            "size": count(2000, "grammar: number of training texts."),
            "tokenizer": Key("none", TOKENIZER_HELP),
            "lower_case": Key(False, "Convert the text to lower case."),
            "join": Key(False, "Join the sentences of a text into one."),
            "max_sentences": max_row(128, "Further sentences of a text are ignored.", "sentences"),
            "max_words": max_row(64, "Maximum length of a sentence; longer sentences are split."),
            "num_buckets": NUM_BUCKETS,
            "vectors": Key("", "File of pretrained word vectors, such as GloVe; empty = random initialization."),
        },
        "vocab": {
            "algorithm": choice("word", SUBWORDS.help, *SUBWORDS.choices),
            "size": count(10_000, VOCAB_SIZE.help, "pieces", low=SMALLEST_VOCAB),
            "byte_fallback": BYTE_FALLBACK,
            "sample_lines": SAMPLE_LINES,
            "model": VOCAB_MODEL,
        },
        "loss": {"label_smoothing": LABEL_SMOOTHING},
        "eval": {"batch_tokens": eval_tokens(16_384, "words")},
        "train": {
            "batch_tokens": train_tokens(8192, "words"),
            "early_stopping_metric": measure("accuracy", "accuracy", "loss"),
        },
    },
    "sentences": {
        "encoder": ENCODER,
        "data": {
            "corpus": choice("grammar", "Corpus: grammar (English or German) or files.", "grammar", "files"),
            "directory": directory("files"),
            "train": Key("train.tsv", "files: .tsv or .jsonl files, separated by commas."),
            "dev": Key("dev.tsv", "files: development file; empty = hold out one fold of the training texts."),
            **FOLDS,
            "label": Key("label", 'Column or field; "a|b" = whichever the file has; "a,b" = both, as scores.'),
            "texts": Key(
                ["sentence"], 'Column or field of the sentence, or of the two texts of a pair; "a|b" as above.'
            ),
            "scores": Key(False, "Labels are numbers to regress."),
            "size": count(2000, "grammar: number of training texts."),
            "max_length": max_row(
                128, "Maximum length of a row, including special tokens; the longest text is truncated."
            ),
            "num_buckets": NUM_BUCKETS,
        },
        "loss": {
            "label_smoothing": LABEL_SMOOTHING,
            "language_model": Key(
                0.0,
                "Weight of the auxiliary loss of next tokens (Radford et al., 2018); model causal_head.",
                low=0,
                high=1000,
            ),
        },
        "eval": {"batch_tokens": eval_tokens(4096, "pieces")},
        "train": {
            "batch_tokens": train_tokens(1024, "pieces"),
            # spearman and pearson are for scores, the others for labels
            "early_stopping_metric": measure(
                *("accuracy", "accuracy", "f1", "matthews", "spearman", "pearson", "loss")
            ),
        },
    },
    "ruse": {
        "encoders": {
            "places": Key([], "Sentence encoders, as encoder.place of other tasks; empty = one random encoder."),
            "layers": Key(
                [-1],
                "Layers whose means are the sentence vector; 0 = embeddings, -1 = last layer.",
                low=-1000,
                high=1000,
            ),
            "normalize": Key(False, "Scale the mean of each layer to a root mean square of 1."),
            "num_layers": layers(2, "Layers of the random encoder."),
            "d_model": width(128, "Width of the random encoder."),
            "d_ff": width(512, "Width of the hidden layer of the feed-forward blocks of the random encoder."),
            "num_heads": count(2, "Attention heads of the random encoder.", high=4096),
        },
        "data": {
            "corpus": choice(
                "grammar", "Corpus: grammar (sentences and shortened copies) or files.", "grammar", "files"
            ),
            "directory": directory("files"),
            "train": Key("train.tsv", "files: .tsv or .jsonl files, separated by commas."),
            "dev": Key("dev.tsv", "files: development file; empty = hold out one fold of the training pairs."),
            **FOLDS,
            "label": Key("score", 'Column of the scores; "a|b" = whichever the file has.'),
            "texts": Key(["reference", "hypothesis"], 'Columns of the pair; "a|b" as above.'),
            "scores": Key(True, "Always true."),
            "size": count(2000, "grammar: number of training pairs."),
        },
        "vocab": {"size": count(8000, "Vocabulary of the random encoder.", "pieces", low=SMALLEST_VOCAB)},
        "train": {
            "batch_tokens": train_tokens(64, "pairs"),
            "early_stopping_metric": measure("pearson", "pearson", "spearman", "loss"),
        },
    },
    "tag": {
        "encoder": ENCODER,
        "data": {
            **TAGGED,
            "max_length": max_row(
                128, "Maximum length of a row, including special tokens; longer sentences are split."
            ),
            "num_buckets": NUM_BUCKETS,
        },
        "loss": {"label_smoothing": LABEL_SMOOTHING},
        "eval": {"batch_tokens": eval_tokens(4096, "pieces")},
        "train": {
            "batch_tokens": train_tokens(1024, "pieces"),
            "early_stopping_metric": measure("f1", *TAG_MEASURES),
        },
    },
    "span": {
        "encoder": ENCODER,
        "data": {
            "corpus": choice(
                *("grammar", "Corpus: grammar (find the German translation of an English sentence) or files."),
                *("grammar", "files"),
            ),
            "directory": directory("files"),
            "train": Key("train.json", "files: questions in the format of SQuAD 1.1 or 2.0."),
            "dev": Key(
                "dev.json", "files: development file; empty = hold out the articles of one fold of the training file."
            ),
            **FOLDS,
            "size": count(500, "grammar: number of training questions."),
            "max_length": max_row(384, "Maximum length of a row, including special tokens."),
            "max_question": max_row(64, "Maximum length of a question; longer questions are truncated."),
            "stride": max_row(128, "Distance between the starts of windows over a long context."),
            "num_buckets": NUM_BUCKETS,
        },
        "loss": {"label_smoothing": LABEL_SMOOTHING},
        "eval": {"batch_tokens": eval_tokens(4096, "pieces")},
        "decode": {
            "max_answer": max_row(30, "Maximum length of an answer."),
            "n_best": count(20, "Number of candidate answers to rank."),
            "average": AVERAGE,
        },
        "train": {
            "batch_tokens": train_tokens(3072, "pieces"),
            "early_stopping_metric": measure("f1", "f1", "exact_match", "loss"),
        },
    },
    "pretrain": {
        "data": {
            **DOCUMENTS,
            "dev_share": Key(0.05, "Fraction of documents held out, spread over all files.", above=0, below=1),
            "size": count(4000, "grammar: number of training sentences."),
            "max_length": max_row(128, "Length of a row, including [CLS] and [SEP].", "tokens", low=5),
            "packing": Key(
                False,
                "Fill training rows with several examples that do not see each other; needs model.next_sentence=false.",
            ),
            "cache": CACHE,
        },
        "vocab": {
            "algorithm": choice("wordpiece", "Kind of the vocabulary.", "wordpiece", "unigram"),
            "size": VOCAB_SIZE,
            "lower_case": Key(True, "Convert the text to lower case."),
            "model": Key("", "Folder with tokenizer.json or vocab.txt; empty = train a vocabulary."),
        },
        "corrupt": {
            "share": Key(0.15, "Fraction of tokens to predict.", above=0, high=1),
            "mask": share(0.8, "Fraction of these replaced by [MASK]."),
            "random": share(0.1, "Fraction of these replaced by a random piece; the rest is unchanged."),
            "whole_words": Key(False, "Select all pieces of a word together."),
        },
        "initialization": choice(
            "normal", "normal, or mimetic (attention starts local; helps small models).", "normal", "mimetic"
        ),
        "eval": {"batch_tokens": eval_tokens(8192, "tokens")},
        "train": {
            # perplexity of masked tokens
            "early_stopping_metric": measure(
                *("perplexity", "perplexity", "mlm_loss", "mlm_accuracy", "nsp_accuracy", "loss")
            ),
        },
    },
    "bidirectional_language_model": {
        "data": {
            **LINES,  # words are separated by blanks
            "block_length": max_row(32, "Length of a training block.", "words", low=2),
        },
        "vocab": {  # of the predicted words; the input uses characters
            "min_count": count(2, "Minimum frequency of a word."),
            "size": count(1_000_000, "Maximum number of predicted words.", "words"),
        },
        "loss": {
            "num_sampled": count(
                *(0, "Sampled softmax of training (Jean et al., 2015); 0 = full softmax.", "words"), low=0
            ),
        },
        "eval": {
            "context": count(
                *(16, "Minimum number of words read before each prediction, where available.", "words"), low=0
            ),
            "batch_tokens": eval_tokens(4096, "words"),
        },
        "train": {"early_stopping_metric": measure("perplexity", "perplexity", "loss")},  # of both directions
    },
    "feature_tagger": {
        "data": {
            **TAGGED,
            "max_length": max_row(128, "Maximum length of a row; longer sentences are split.", "words"),
            "num_buckets": NUM_BUCKETS,
            "vectors": Key("", "File of word vectors, such as GloVe."),
            "elmo": Key("", "Workdir of a bidirectional language model whose layers are features."),
            "cache": CACHE,
        },
        "vocab": {"size": count(0, "Number of learned word vectors, shared by hashing; 0 = none.", low=0)},
        "loss": {"label_smoothing": LABEL_SMOOTHING},
        "eval": {"batch_tokens": eval_tokens(4096, "words")},
        "train": {
            "batch_tokens": train_tokens(1024, "words"),
            "early_stopping_metric": measure("f1", *TAG_MEASURES),
        },
    },
    "word_vectors": {
        "data": {
            **DOCUMENTS,
            "dev_share": Key(0.01, "Fraction of documents held out, spread over all files.", above=0, below=1),
            "size": count(20_000, "grammar: number of training sentences."),
            "tokenizer": Key("intl", TOKENIZER_HELP),
            "lower_case": Key(True, "Convert the text to lower case."),
            "punctuation": Key(False, "Keep tokens without letters or digits."),
            "subsample": share(1e-3, "Threshold for discarding frequent words (Mikolov et al., 2013b); 0 = off."),
            "block_length": max_row(24, "Center words that share their negative samples.", "words", low=2),
            "cache": CACHE,
        },
        "vocab": {
            "min_count": count(5, "Minimum frequency of a word."),
            "size": count(1_000_000, "Maximum number of words.", "words"),
        },
        "loss": {
            "negatives": count(5, "Weight of the negative samples of each pair."),
            "shared_negatives": count(16, "Negative samples drawn per block."),
            "power": Key(
                *(0.75, "Exponent on the word counts in the distribution of negative samples."), low=-100, high=100
            ),
        },
        "train": {"early_stopping_metric": measure("loss", "loss")},
    },
}

_PAIRS = TASKS["translate"]
TASKS["retrieval"] = {  # of the pairs of translation
    "data": {name: key for name, key in _PAIRS["data"].items() if name not in ("packing", "spec_augment")},
    "vocab": {name: key for name, key in _PAIRS["vocab"].items() if name != "lexicon"},
    "eval": {
        "max_pairs": count(1000, "Dev pairs to search among.", high=100_000),
        "batch_tokens": eval_tokens(8192, "tokens"),
    },
    "train": {
        "early_stopping_metric": measure("recall_1", "recall_1", "recall_5", "recall_10", "loss"),
    },
}
