"""Default settings that each task adds to a config: `data`, `vocab`, `loss`, `eval`, `decode` ...

`corpus="grammar"` selects the embedded synthetic corpus, which needs no files. Keys marked "grammar:", "text:",
"files:" or "tfds:" apply only to that value of `data.corpus`. All text files may be plain or gzipped (`.gz`).
"""

from typing import Any

ENCODER: dict[str, Any] = {  # the encoder to fine-tune
    "place": "",  # Hugging Face folder, installed package that contains one, or workdir; empty = random encoder:
    "num_layers": 2,
    "d_model": 128,
    "d_ff": 512,
    "num_heads": 2,
    "vocab_size": 8000,
    "layers": "last",  # last | mixture (learned weights over all; Peters et al., 2018) | 4 (last four, concatenated)
    "frozen": False,  # do not update the encoder
    "dropout": 0.1,
    "dtype": "float32",  # of activations and products: float32 | bfloat16; parameters stay float32
}

LINES: dict[str, Any] = {  # text for language models, one unit per line
    "corpus": "grammar",  # grammar (German side) | text
    "directory": "",  # text: folder of the files
    "train": "train.txt",
    "dev": "",  # empty = use the last dev_share of the lines of the training file
    "test": "",  # empty = use the last test_share of the lines of the training file, after the dev lines
    "dev_share": 0.1,
    "test_share": 0.0,
    "size": 20_000,  # grammar: number of training lines
}

TAGGED: dict[str, Any] = {  # tagged words
    "corpus": "grammar",  # grammar (person and place names) | files
    "directory": "",  # files: folder of the files
    "train": "train.conll",  # one word per line with its columns; a blank line separates sentences
    "dev": "dev.conll",  # empty = hold out one fold of the training file
    "fold": 0,  # which fold to hold out
    "folds": 10,
    "word_column": 0,  # index of the column; 0 = first
    "tag_column": -1,  # index of the column; -1 = last
    "scheme": "bio",  # bio (every entity starts with B-) | iob1 (B- only after an entity of the same type)
    "size": 2000,  # grammar: number of training sentences
}

DOCUMENTS: dict[str, Any] = {  # text in documents
    "corpus": "grammar",  # grammar (German and English documents in alternation) | text
    "directory": "",  # text: folder of the files
    "train": [],  # files with one sentence or paragraph per line and a blank line after each document
    "running": [],  # files of running text, such as books; blank lines separate paragraphs
    "paragraphs": 40,  # number of paragraphs of running text that form one document
}

TASKS: dict[str, dict[str, Any]] = {
    "translate": {
        "data": {
            "corpus": "grammar",  # grammar | text | tfds
            "directory": "",  # text: folder of TRAIN.SOURCE, TRAIN.TARGET, ...; tfds: its data_dir
            "name": "",  # tfds: data set name, such as wmt14_translate/de-en
            "source": "en",  # source language; "en,fr" = two sources (model rnn), separated by tabs when translating
            "target": "de",
            "train": "train",  # file name without the language suffix, or TFDS split
            "dev": "val",
            "test": "test",
            "size": 20_000,  # grammar: number of training pairs
            "max_length": 128,  # maximum pieces per side, including end of sentence; longer pairs are skipped
            "num_buckets": 6,  # number of batch shapes
            "cache": "",  # folder of prepared corpora; empty = $NMT_JAX_CACHE or ~/.cache/nmt-jax
        },
        "vocab": {
            "algorithm": "unigram",  # unigram | bpe | word
            "size": 8000,
            "joint": True,  # share one vocabulary between source and target
            "byte_fallback": True,  # spell unseen characters as bytes instead of <unk>
            "source_model": "",  # existing SentencePiece .model; empty = train one
            "target_model": "",
            "lexicon": "",  # file of SOURCE, TARGET, PROBABILITY rows that bias the output of model rnn
            "sampling_alpha": 0.0,  # subword regularization (Kudo, 2018); 0 = off
        },
        "loss": {
            "label_smoothing": 0.1,
            "teacher_forcing": {  # rate of reference pieces as decoder input; below 1 for recurrent decoders only
                "schedule": "constant",  # constant | linear | exponential | inverse_sigmoid
                "start": 1.0,
                "end": 1.0,
                "decay_steps": 1000,  # larger values decay more slowly
            },
            "risk": {  # minimum-risk training (Shen et al., 2016)
                "metric": "",  # metric of candidates against the reference, such as chrf; empty = off
                "num_samples": 8,  # sampled candidates per line; the reference is added to them
                "temperature": 1.0,  # sampling temperature
                "sharpness": 0.005,  # exponent alpha on the candidate probabilities
                "share": 1.0,  # weight of the risk in the loss; the rest is cross-entropy
            },
        },
        "eval": {
            "max_segments": 500,  # dev sentences to translate for dev/bleu; 0 = compute the loss only
            "beam_size": 1,
            "batch_tokens": 8192,
        },
        "decode": {
            "beam_size": 5,
            "length_penalty": 0.6,  # Wu et al. (2016), equation 14
            "max_length_ratio": 1.5,  # at most ratio * source pieces + offset target pieces
            "max_length_offset": 10,
            "average": 1,  # number of last checkpoints whose parameters are averaged
        },
        "train": {"early_stopping_metric": "bleu"},  # bleu | loss | perplexity
    },
    "language_model": {
        "data": {
            **LINES,
            "block_length": 64,  # tokens per training block
            "cache": "",  # folder of prepared texts; empty = $NMT_JAX_CACHE or ~/.cache/nmt-jax
        },
        "vocab": {
            "algorithm": "unigram",  # unigram | bpe | word
            "size": 8000,
            "byte_fallback": True,  # spell unseen characters as bytes instead of <unk>
            "model": "",  # existing SentencePiece .model; empty = train one
        },
        "loss": {"label_smoothing": 0.0},
        "eval": {
            "context": 32,  # minimum number of preceding tokens for each prediction, where available
            "batch_tokens": 8192,
        },
        "train": {"early_stopping_metric": "perplexity"},  # perplexity | loss
    },
    "classify": {
        "data": {
            "corpus": "grammar",  # grammar (English or German) | files
            "directory": "",  # files: folder of the files
            "train": "train.tsv",  # .tsv or .jsonl
            "dev": "",  # empty = hold out one fold of the training file
            "fold": 0,  # which fold to hold out
            "folds": 10,
            "label": "label",  # column or field of the label
            "texts": ["text"],  # columns or fields of the text; in JSONL also lists of sentences
            "size": 2000,  # grammar: number of training texts
            "tokenizer": "none",  # word tokenizer: none (white space) | 13a | intl | zh | char
            "lower_case": False,
            "join": False,  # join the sentences of a text into one
            "max_sentences": 128,  # further sentences of a text are ignored
            "max_words": 64,  # maximum pieces per sentence; longer sentences are split
            "num_buckets": 6,  # number of batch shapes
            "vectors": "",  # file of pretrained word vectors, such as GloVe; empty = random initialization
        },
        "vocab": {
            "algorithm": "word",  # unigram | bpe | word
            "size": 10_000,
            "byte_fallback": True,  # unigram and bpe: spell unseen characters as bytes instead of <unk>
            "model": "",  # existing SentencePiece .model; empty = train one
        },
        "loss": {"label_smoothing": 0.0},
        "eval": {"batch_tokens": 16_384},  # words, including padding
        "train": {"batch_tokens": 8192, "early_stopping_metric": "accuracy"},  # accuracy | loss
    },
    "sentences": {
        "encoder": ENCODER,
        "data": {
            "corpus": "grammar",  # grammar (English or German) | files
            "directory": "",  # files: folder of the files
            "train": "train.tsv",  # .tsv or .jsonl files, separated by commas
            "dev": "dev.tsv",  # empty = hold out one fold of the training texts
            "fold": 0,  # which fold to hold out
            "folds": 10,
            "label": "label",  # column or field; "a|b" = whichever the file has; "a,b" = both, as scores
            "texts": ["sentence"],  # column or field of the sentence, or of the two texts of a pair; "a|b" as above
            "scores": False,  # labels are numbers to regress
            "size": 2000,  # grammar: number of training texts
            "max_length": 128,  # maximum pieces per row, including special tokens; the longest text is truncated
            "num_buckets": 6,  # number of batch shapes
        },
        "loss": {"label_smoothing": 0.0},
        "eval": {"batch_tokens": 4096},  # pieces, including padding
        # early_stopping_metric: accuracy | f1 | matthews | loss; for scores: spearman | pearson | loss
        "train": {"batch_tokens": 1024, "early_stopping_metric": "accuracy"},
    },
    "ruse": {
        "encoders": {
            "places": [],  # sentence encoders, as encoder.place of other tasks; empty = one random encoder:
            "layers": [-1],  # layers whose means are the sentence vector; 0 = embeddings, -1 = last layer
            "normalize": False,  # scale the mean of each layer to a root mean square of 1
            "num_layers": 2,
            "d_model": 128,
            "d_ff": 512,
            "num_heads": 2,
        },
        "data": {
            "corpus": "grammar",  # grammar (sentences and shortened copies) | files
            "directory": "",  # files: folder of the files
            "train": "train.tsv",  # .tsv or .jsonl files, separated by commas
            "dev": "dev.tsv",  # empty = hold out one fold of the training pairs
            "fold": 0,  # which fold to hold out
            "folds": 10,
            "label": "score",  # column of the scores; "a|b" = whichever the file has
            "texts": ["reference", "hypothesis"],  # columns of the pair; "a|b" as above
            "scores": True,  # always true
            "size": 2000,  # grammar: number of training pairs
        },
        "vocab": {"size": 8000},  # of the random encoder
        "train": {"batch_tokens": 64, "early_stopping_metric": "pearson"},  # pairs; pearson | spearman | loss
    },
    "tag": {
        "encoder": ENCODER,
        "data": {
            **TAGGED,
            "max_length": 128,  # maximum pieces per row, including special tokens; longer sentences are split
            "num_buckets": 6,  # number of batch shapes
        },
        "loss": {"label_smoothing": 0.0},
        "eval": {"batch_tokens": 4096},  # pieces, including padding
        "train": {"batch_tokens": 1024, "early_stopping_metric": "f1"},  # f1 | precision | recall | accuracy | loss
    },
    "span": {
        "encoder": ENCODER,
        "data": {
            "corpus": "grammar",  # grammar (find the German translation of an English sentence) | files
            "directory": "",  # files: folder of the files
            "train": "train.json",  # in the format of SQuAD 1.1
            "dev": "dev.json",  # empty = hold out the articles of one fold of the training file
            "fold": 0,  # which fold to hold out
            "folds": 10,
            "size": 500,  # grammar: number of training questions
            "max_length": 384,  # maximum pieces per row, including special tokens
            "max_question": 64,  # maximum pieces per question; longer questions are truncated
            "stride": 128,  # distance in pieces between the starts of windows over a long context
            "num_buckets": 6,  # number of batch shapes
        },
        "loss": {"label_smoothing": 0.0},
        "eval": {"batch_tokens": 4096},  # pieces, including padding
        "decode": {
            "max_answer": 30,  # maximum pieces per answer
            "n_best": 20,  # number of candidate answers to rank
            "average": 1,  # number of last checkpoints whose parameters are averaged
        },
        "train": {"batch_tokens": 3072, "early_stopping_metric": "f1"},  # f1 | exact_match | loss
    },
    "pretrain": {
        "data": {
            **DOCUMENTS,
            "dev_share": 0.05,  # fraction of documents held out, spread over all files
            "size": 4000,  # grammar: number of training sentences
            "max_length": 128,  # tokens per row, including [CLS] and [SEP]
            "cache": "",  # folder of prepared texts; empty = $NMT_JAX_CACHE or ~/.cache/nmt-jax
        },
        "vocab": {
            "algorithm": "wordpiece",  # wordpiece | unigram
            "size": 8000,
            "lower_case": True,
            "model": "",  # folder with tokenizer.json or vocab.txt; empty = train a vocabulary
        },
        "corrupt": {
            "share": 0.15,  # fraction of tokens to predict
            "mask": 0.8,  # fraction of these replaced by [MASK]
            "random": 0.1,  # fraction of these replaced by a random piece; the rest is unchanged
            "whole_words": False,  # select all pieces of a word together
        },
        "initialization": "normal",  # normal | mimetic (attention starts local; helps small models)
        "eval": {"batch_tokens": 8192},
        # early_stopping_metric: perplexity (of masked tokens) | mlm_loss | mlm_accuracy | nsp_accuracy | loss
        "train": {"early_stopping_metric": "perplexity"},
    },
    "bidirectional_language_model": {
        "data": {
            **LINES,  # words are separated by blanks
            "block_length": 32,  # words per training block
        },
        "vocab": {"min_count": 2, "size": 1_000_000},  # of the predicted words; the input uses characters
        "loss": {"num_sampled": 0},  # words in the sampled softmax of training (Jean et al., 2015); 0 = full softmax
        "eval": {
            "context": 16,  # minimum number of words read before each prediction, where available
            "batch_tokens": 4096,
        },
        "train": {"early_stopping_metric": "perplexity"},  # perplexity | loss; of both directions
    },
    "feature_tagger": {
        "data": {
            **TAGGED,
            "max_length": 128,  # maximum words per row; longer sentences are split
            "num_buckets": 6,  # number of batch shapes
            "vectors": "",  # file of word vectors, such as GloVe
            "elmo": "",  # workdir of a bidirectional language model whose layers are features
            "cache": "",  # folder of stored features; empty = $NMT_JAX_CACHE or ~/.cache/nmt-jax
        },
        "vocab": {"size": 0},  # number of learned word vectors, shared by hashing; 0 = none
        "loss": {"label_smoothing": 0.0},
        "eval": {"batch_tokens": 4096},  # words, including padding
        "train": {"batch_tokens": 1024, "early_stopping_metric": "f1"},  # f1 | precision | recall | accuracy | loss
    },
    "word_vectors": {
        "data": {
            **DOCUMENTS,
            "dev_share": 0.01,  # fraction of documents held out, spread over all files
            "size": 20_000,  # grammar: number of training sentences
            "tokenizer": "intl",  # word tokenizer: none (white space) | 13a | intl | zh | char
            "lower_case": True,
            "punctuation": False,  # keep tokens without letters or digits
            "subsample": 1e-3,  # threshold for discarding frequent words (Mikolov et al., 2013b); 0 = off
            "block_length": 24,  # center words that share their negative samples
            "cache": "",  # folder of prepared texts; empty = $NMT_JAX_CACHE or ~/.cache/nmt-jax
        },
        "vocab": {"min_count": 5, "size": 1_000_000},  # minimum frequency and maximum number of words
        "loss": {
            "negatives": 5,  # weight of the negative samples of each pair
            "shared_negatives": 16,  # negative samples drawn per block
            "power": 0.75,  # exponent on the word counts in the distribution of negative samples
        },
        "train": {"early_stopping_metric": "loss"},
    },
}

TINY_ENCODER = {"place": "", "num_layers": 1, "d_model": 16, "d_ff": 32, "vocab_size": 400, "dtype": "float32"}

# Changes for `smoke=true`: a few sentences of the embedded corpus.
TINY_TASKS: dict[str, dict[str, Any]] = {
    "translate": {
        "data": {"corpus": "grammar", "source": "en", "target": "de", "size": 200, "max_length": 64, "num_buckets": 1},
        "vocab": {"size": 400, "source_model": "", "target_model": "", "lexicon": ""},
        "eval": {"max_segments": 4, "batch_tokens": 512},
    },
    "language_model": {
        "data": {"corpus": "grammar", "size": 200, "block_length": 16},
        "vocab": {"size": 400, "model": ""},
        "eval": {"context": 8, "batch_tokens": 512},
    },
    "classify": {
        "data": {"corpus": "grammar", "size": 100, "max_words": 16, "num_buckets": 2, "vectors": ""},
        "vocab": {"size": 400, "model": ""},
        "eval": {"batch_tokens": 2048},
    },
    "sentences": {
        "encoder": TINY_ENCODER,
        "data": {"corpus": "grammar", "size": 100, "max_length": 32, "num_buckets": 1, "texts": ["sentence"]}
        | {"scores": False},
        "eval": {"batch_tokens": 2048},
        "train": {"early_stopping_metric": "accuracy"},
    },
    "ruse": {
        "encoders": {"places": [], "layers": [-1], "num_layers": 1, "d_model": 16, "d_ff": 32},
        "data": {"corpus": "grammar", "size": 100},
        "vocab": {"size": 400},
    },
    "tag": {
        "encoder": TINY_ENCODER,
        "data": {"corpus": "grammar", "size": 100, "max_length": 32, "num_buckets": 1},
        "eval": {"batch_tokens": 2048},
    },
    "span": {
        "encoder": TINY_ENCODER,
        "data": {"corpus": "grammar", "size": 40, "max_length": 64, "max_question": 24, "stride": 16}
        | {"num_buckets": 1},
        "eval": {"batch_tokens": 2048},
    },
    "pretrain": {
        "data": {"corpus": "grammar", "size": 800, "max_length": 32},
        "vocab": {"size": 400, "model": ""},
        "eval": {"batch_tokens": 2048},
    },
    "bidirectional_language_model": {
        "data": {"corpus": "grammar", "size": 200, "block_length": 16},
        "vocab": {"min_count": 1, "size": 400},
        "eval": {"context": 8, "batch_tokens": 512},
    },
    "feature_tagger": {
        "data": {"corpus": "grammar", "size": 100, "max_length": 32, "num_buckets": 1, "vectors": "", "elmo": ""},
        "vocab": {"size": 400},
        "eval": {"batch_tokens": 2048},
    },
    "word_vectors": {
        "data": {"corpus": "grammar", "size": 200, "block_length": 16},
        "vocab": {"min_count": 1, "size": 400},
    },
}
