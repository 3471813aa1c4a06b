"""Every key of an experiment with its plainest value; a page starts here and changes some.

The config comes back locked: a page that misspells a key is told so.
"""

import copy
import difflib
import types
from typing import Any

from ml_collections import ConfigDict

MODELS = {
    "transformer": {
        "num_encoder_layers": 3,
        "num_decoder_layers": 3,
        "d_model": 256,
        "d_ff": 1024,
        "num_heads": 4,
        "d_k": 0,  # width of a head's queries and keys; 0 = d_model / num_heads
        "d_v": 0,  # width of a head's values; 0 = d_model / num_heads
        "dropout": 0.1,  # on residual branches and embeddings
        "attention_dropout": 0.0,
        "relu_dropout": 0.0,
        "positions": "sinusoidal",  # sinusoidal | learned
        "max_positions": 1024,
        "tie_embeddings": "three-way",  # three-way | two-way (target and output) | none
        "norm": "pre",  # pre | post
        "activation": "relu",  # relu | gelu | swiglu
        "dtype": "float32",  # of the arithmetic: float32 | bfloat16; the state is float32
        "remat": False,  # recompute layers in the backward pass: less memory, a third more time
    },
    "rnn": {
        "cell": "lstm",  # lstm | gru | rnn | lstmn: encoders attend to their own past, the decoder is an lstm
        "num_encoder_layers": 1,
        "num_decoder_layers": 1,
        "d_embedding": 256,
        "d_hidden": 512,  # of every layer; a bidirectional encoder takes half of it each way
        "bidirectional": True,
        "residual": False,  # around layers that are as wide as what they read
        "dropout": 0.2,
        "variational_dropout": False,  # one mask for all steps of a sequence (Gal and Ghahramani, 2016)
        "decoder": "luong",  # luong: looks with its new state | bahdanau: looks first, reads the context
        "attention": "global",  # none | global | local-m | local-p
        "score": "general",  # dot | scaled_dot | general | reduced_rank | additive | concat
        "d_attention": 256,  # hidden units of additive and concat, rank of reduced_rank
        "window": 10,  # D of local attention
        "input_feeding": True,
        "context_every_step": False,  # the encoder's last output beside every decoder input
        "bridge": "transform",  # the first decoder state: zero | copy | transform | mean
        "combination": "concat",  # of several sources: concat | flat | hierarchical
        "share_encoder": False,  # one encoder for all of several sources, not one each
        "copying": "none",  # words of the source: none | pointer (a gate between two) | copynet (one softmax)
        "max_unknown": 50,  # a line's own words, unknown to the vocabulary, that can be copied
        "lexicon_epsilon": 0.001,  # the probability of what vocab.lexicon does not list
        "tie_embeddings": "none",  # three-way | two-way (target and output) | none
        "dtype": "float32",
    },
    "rnn_lm": {
        "cell": "lstm",  # lstm | gru | rnn
        "num_layers": 1,
        "d_embedding": 200,
        "d_hidden": 200,  # of every layer
        "dropout": 0.5,
        "variational_dropout": True,  # one mask for all steps of a block (Gal and Ghahramani, 2016)
        "tie_embeddings": True,  # input and output
        "pointer_window": 0,  # of the last words that can be pointed at (Merity et al., 2017); 0 = no pointer
        "dtype": "float32",
    },
    "gpt": {
        "num_layers": 4,
        "d_model": 256,
        "d_ff": 1024,
        "num_heads": 4,
        "dropout": 0.1,  # on residual branches and embeddings
        "attention_dropout": 0.1,
        "max_positions": 512,
        "norm": "post",  # post (2018) | pre (2019)
        "activation": "gelu",  # gelu (by tanh) | gelu_erf | relu | swiglu
        "dtype": "float32",
        "remat": False,  # recompute layers in the backward pass: less memory, a third more time
    },
    "han": {
        "cell": "gru",  # lstm | gru | rnn
        "num_layers": 1,  # of words, and of sentences
        "d_embedding": 100,
        "d_hidden": 100,  # half of it each way
        "d_attention": 100,
        "dropout": 0.5,
        "variational_dropout": False,
        "word_dropout": 0.0,  # share of the vocabulary that a document does not see
        "dtype": "float32",
    },
    "sentence_classifier": {
        "cell": "gru",  # lstm | gru | rnn
        "num_layers": 1,
        "d_embedding": 100,
        "d_hidden": 100,  # half of it each way
        "d_attention": 100,
        "dropout": 0.5,
        "variational_dropout": False,
        "word_dropout": 0.0,  # share of the vocabulary that a document does not see
        "dtype": "float32",
    },
    "sentence_head": {  # over a pretrained encoder: of a whole row
        "pooling": "mean",  # of the pieces of a row: mean | first | pair (of two texts: u, v, |u - v|, u * v)
        "dropout": 0.1,  # of what the head reads
    },
    "siamese_head": {"pooling": "mean", "dropout": 0.0},  # over a pretrained encoder: two texts, each in its own row
    "piece_head": {"dropout": 0.1},  # over a pretrained encoder: of every piece; dropout of what the head reads
    "mlp": {"num_layers": 1, "d_hidden": 256, "dropout": 0.1},  # over features: rectified hidden layers, 0 = linear
    "bert": {
        "num_layers": 12,
        "d_model": 768,
        "d_ff": 3072,
        "num_heads": 12,
        "max_positions": 512,
        "activation": "gelu_erf",  # gelu_erf | gelu (by tanh) | relu
        "dropout": 0.1,  # on sublayers and embeddings
        "attention_dropout": 0.1,
        "next_sentence": True,  # tell the next sentence from one of another document
        "init_stddev": 0.02,  # of the first parameters; narrower models want more
        "causal": False,  # from left to right: every next token, not masked ones; needs next_sentence=False
        "dtype": "float32",  # of products: float32 | bfloat16; sums and state are float32
        "remat": False,  # recompute layers in the backward pass: less memory, a third more time
    },
    "elmo": {
        "max_characters": 20,  # bytes of a word, its two ends included; the rest of a longer one is not read
        "d_character": 16,
        "widths": [1, 2, 3, 4, 5],  # of the windows over characters
        "filters": [32, 32, 64, 128, 128],  # of each width
        "num_highways": 2,
        "num_layers": 2,
        "d_hidden": 512,  # memory cells of a layer, in each direction
        "d_projection": 128,  # of what a layer puts out in each direction, and of a word
        "dropout": 0.1,
        "dtype": "float32",
    },
    "feature_tagger": {
        "d_word": 50,  # of learned vectors of words
        "d_hidden": 100,  # of the recurrent network, half of it each way; 0 = none
        "layers": "mixture",  # of ELMo: mixture (learned: Peters et al., 2018) | 0 (the words themselves) | 1 …
        "dropout": 0.5,
    },
    "word_vectors": {
        "algorithm": "skip_gram",  # skip_gram | cbow
        "d_model": 100,
        "window": 5,  # words to each side
        "num_buckets": 0,  # of character n-grams; 0 = words alone
        "min_n": 3,  # characters of an n-gram, "<" and ">" at the ends of a word included
        "max_n": 6,
    },
}


SMALL = {  # what `smoke` leaves of them
    "transformer": {"num_encoder_layers": 1, "num_decoder_layers": 1, "d_model": 16, "d_ff": 32, "num_heads": 2}
    | {"d_k": 0, "d_v": 0},
    "rnn": {"num_encoder_layers": 1, "num_decoder_layers": 1, "d_embedding": 16, "d_hidden": 16, "d_attention": 16},
    "rnn_lm": {"num_layers": 1, "d_embedding": 16, "d_hidden": 16},
    "gpt": {"num_layers": 1, "d_model": 16, "d_ff": 32, "num_heads": 2, "max_positions": 64},
    "han": {"num_layers": 1, "d_embedding": 16, "d_hidden": 16, "d_attention": 16},
    "sentence_classifier": {"num_layers": 1, "d_embedding": 16, "d_hidden": 16, "d_attention": 16},
    "sentence_head": {},
    "siamese_head": {},
    "piece_head": {},
    "mlp": {"num_layers": 1, "d_hidden": 16},
    "bert": {"num_layers": 2, "d_model": 16, "d_ff": 32, "num_heads": 2, "max_positions": 64},
    "elmo": {"max_characters": 12, "d_character": 4, "widths": [1, 2], "filters": [8, 8], "d_hidden": 24}
    | {"d_projection": 12},
    "feature_tagger": {"d_hidden": 16},
    "word_vectors": {"d_model": 16},
}


RUN = {  # what every training run has
    "optimizer": {
        "name": "adam",  # adam | adamw | adagrad
        "schedule": "inverse_sqrt",  # inverse_sqrt | noam | cosine | linear | constant, after a warm-up
        "learning_rate": 1e-3,  # the peak; noam: a factor on (d_model * warmup_steps) ** -0.5
        "warmup_steps": 4000,
        "beta1": 0.9,
        "beta2": 0.98,
        "epsilon": 1e-9,
        "weight_decay": 0.0,
        "layer_decay": 1.0,  # the learning rate of each layer times this is that of the one below; 1 = off
        "clip_norm": 0.0,  # 0 = off
        "ema_decay": 0.0,  # 0 = off
    },
    "train": {
        "steps": 2000,
        "batch_tokens": 4096,  # target tokens of the global batch (words of classify), padding included
        "accumulate": 1,  # micro-batches a step
        "log_every": 10,
        "eval_every": 200,
        "checkpoint_every": 200,
        "keep_last": 10,
        "keep_best": 1,
        "early_stopping_metric": "",  # what the task measures on the dev set; see below
        "patience": 0,  # evaluations without improvement; 0 = off
        "minutes": 0.0,  # stop after so much training time; 0 = off
        "watchdog_minutes": 60.0,  # end a run of which no step, evaluation or save was finished for so long; 0 = off
    },
    "mesh": {
        "model": 1,  # devices that share one model; the others share the batch
        "fsdp": False,  # parameters and optimizer are split over those that share the batch, too
    },
}

ENCODER = {  # below the heads of fine-tuning
    "place": "",  # a Hugging Face folder, an installed package with one, a workdir of a pretraining run; or at random:
    "num_layers": 2,
    "d_model": 128,
    "d_ff": 512,
    "num_heads": 2,
    "vocab_size": 8000,
    "layers": "last",  # last | mixture (of all, learned: Peters et al., 2018) | 4 (the last four side by side)
    "frozen": False,  # it does not learn: features only
    "dropout": 0.1,
    "dtype": "float32",  # of the arithmetic: float32 | bfloat16; the state is float32
}

LINES = {  # text for language models
    "corpus": "grammar",  # grammar (its German side) | text
    "directory": "",  # text: the folder of the files
    "train": "train.txt",  # plain or .gz
    "dev": "",  # no file: the end of the train file, dev_share of its lines
    "test": "",  # no file: the very end of the train file, test_share of its lines
    "dev_share": 0.1,
    "test_share": 0.0,
    "size": 20_000,  # grammar: training lines
}

TAGGED = {  # tagged words
    "corpus": "grammar",  # grammar (names of people and towns) | files
    "directory": "",  # files: the folder of them
    "train": "train.conll",  # a word a line, in columns; a blank line between sentences; plain or .gz
    "dev": "dev.conll",  # empty: one fold of the training file
    "fold": 0,
    "folds": 10,
    "word_column": 0,  # the first
    "tag_column": -1,  # the last
    "scheme": "bio",  # bio (an entity begins with B-) | iob1 (only behind another of its type)
    "size": 2000,  # grammar: training sentences
}

DOCUMENTS = {  # text in documents
    "corpus": "grammar",  # grammar (every other document is German, the rest English) | text
    "directory": "",  # text: the folder of the files
    "train": [],  # plain or .gz: a sentence or paragraph a line, a blank line after each document
    "running": [],  # plain or .gz: running text, such as books; blank lines part paragraphs
    "paragraphs": 40,  # of running text that are taken for a document
}

TASKS = {  # what each task adds
    "translate": {
        "data": {
            "corpus": "grammar",  # grammar | text | tfds
            "directory": "",  # text: the folder of TRAIN.SOURCE, TRAIN.TARGET …; tfds: its data_dir
            "name": "",  # tfds: wmt14_translate/de-en …
            "source": "en",  # "en,fr": two sources, which tabs part in lines to translate; for model rnn
            "target": "de",
            "train": "train",
            "dev": "val",
            "test": "test",
            "size": 20_000,  # grammar: training pairs
            "max_length": 128,  # pieces a side, end of sentence included; longer pairs are left out and counted
            "num_buckets": 6,
            "cache": "",  # prepared corpora; empty = $NMT_JAX_CACHE or ~/.cache/nmt-jax
        },
        "vocab": {
            "algorithm": "unigram",  # unigram | bpe | word
            "size": 8000,
            "joint": True,  # one vocabulary for both languages
            "byte_fallback": True,  # an unseen character becomes its bytes, not <unk>
            "source_model": "",  # a SentencePiece .model given instead of trained
            "target_model": "",
            "lexicon": "",  # a file of SOURCE, TARGET, PROBABILITY lines that biases the output of model rnn
            "sampling_alpha": 0.0,  # subword regularisation (Kudo, 2018); 0 = off
        },
        "loss": {
            "label_smoothing": 0.1,
            "teacher_forcing": {  # share of true previous pieces in training; below 1 for recurrent decoders only
                "schedule": "constant",  # constant | linear | exponential | inverse_sigmoid
                "start": 1.0,
                "end": 1.0,
                "decay_steps": 1000,  # how slowly it falls
            },
            "risk": {  # minimum-risk training (Shen et al., 2016)
                "metric": "",  # of candidates against the reference: chrf, bleu|effective_order:true …; empty = off
                "num_samples": 8,  # candidates of a line; its reference is one more
                "temperature": 1.0,  # that they are drawn at
                "sharpness": 0.005,  # alpha: how much their probabilities count against each other
                "share": 1.0,  # of the loss; the rest is cross-entropy
            },
        },
        "eval": {
            "max_segments": 500,  # dev sentences translated for dev/bleu; 0 = loss only
            "beam_size": 1,
            "batch_tokens": 8192,
        },
        "decode": {
            "beam_size": 5,
            "length_penalty": 0.6,  # Wu et al. (2016), eq. 14
            "max_length_ratio": 1.5,  # target pieces <= ratio * source pieces + offset
            "max_length_offset": 10,
            "average": 1,  # the mean of the last n checkpoints translates
        },
        "train": {"early_stopping_metric": "bleu"},  # bleu | loss | perplexity
    },
    "language_model": {
        "data": {
            **LINES,
            "block_length": 64,  # tokens that a model sees in one piece
            "cache": "",  # prepared texts; empty = $NMT_JAX_CACHE or ~/.cache/nmt-jax
        },
        "vocab": {
            "algorithm": "unigram",  # unigram | bpe | word
            "size": 8000,
            "byte_fallback": True,  # an unseen character becomes its bytes, not <unk>
            "model": "",  # a SentencePiece .model given instead of trained
        },
        "loss": {"label_smoothing": 0.0},
        "eval": {
            "context": 32,  # every token is predicted from at least so many before it, where there are as many
            "batch_tokens": 8192,
        },
        "train": {"early_stopping_metric": "perplexity"},  # perplexity | loss
    },
    "classify": {
        "data": {
            "corpus": "grammar",  # grammar (tells English from German) | files
            "directory": "",  # files: the folder of them
            "train": "train.tsv",  # .tsv or .jsonl, plain or .gz
            "dev": "",  # empty: one fold of the training file
            "fold": 0,
            "folds": 10,
            "label": "label",  # the column or field of the label
            "texts": ["text"],  # those of the text, each a sentence or, in JSONL, a list of sentences
            "size": 2000,  # grammar: training texts
            "tokenizer": "none",  # of words: none (white space) | 13a (punctuation apart) | intl | zh | char
            "lower_case": False,
            "join": False,  # read all sentences of a text as one
            "max_sentences": 128,  # the rest of a longer text is not read
            "max_words": 64,  # pieces of a sentence; a longer one becomes several
            "num_buckets": 6,
            "vectors": "",  # a file of word vectors that the words start from, such as GloVe's
        },
        "vocab": {
            "algorithm": "word",  # unigram | bpe | word
            "size": 10_000,
            "byte_fallback": True,  # not of words: an unseen character becomes its bytes, not <unk>
            "model": "",  # a SentencePiece .model given instead of trained
        },
        "loss": {"label_smoothing": 0.0},
        "eval": {"batch_tokens": 16_384},  # words, padding included
        "train": {"batch_tokens": 8192, "early_stopping_metric": "accuracy"},  # accuracy | loss
    },
    "sentences": {
        "encoder": ENCODER,
        "data": {
            "corpus": "grammar",  # grammar (tells English from German) | files
            "directory": "",  # files: the folder of them
            "train": "train.tsv",  # .tsv or .jsonl, plain or .gz; several have commas between
            "dev": "dev.tsv",  # empty: one fold of the training texts
            "fold": 0,
            "folds": 10,
            "label": "label",  # its column or field; "a|b": the one that a file has; "a,b": both, of scores
            "texts": ["sentence"],  # that of the sentence, or those of a pair; "a|b" as above
            "scores": False,  # labels are numbers to be predicted
            "size": 2000,  # grammar: training texts
            "max_length": 128,  # pieces of a row, special ones included; of a longer one the longest text is cut
            "num_buckets": 6,
        },
        "loss": {"label_smoothing": 0.0},
        "eval": {"batch_tokens": 4096},  # pieces, padding included
        "train": {"batch_tokens": 1024, "early_stopping_metric": "accuracy"},
        # accuracy | f1 | matthews | loss; of scores: spearman | pearson | loss
    },
    "ruse": {
        "encoders": {
            "places": [],  # of sentences: as encoder.place elsewhere; none: one that stays random, of these sizes
            "layers": [-1],  # whose means over a sentence are its vector, 0 the embeddings, -1 the last
            "normalize": False,  # each of these means has a root mean square of 1
            "num_layers": 2,
            "d_model": 128,
            "d_ff": 512,
            "num_heads": 2,
        },
        "data": {
            "corpus": "grammar",  # grammar (sentences and what is left of them) | files
            "directory": "",  # files: the folder of them
            "train": "train.tsv",  # .tsv or .jsonl, plain or .gz; several have commas between
            "dev": "dev.tsv",  # empty: one fold of the training pairs
            "fold": 0,
            "folds": 10,
            "label": "score",  # the column of the scores; "a|b": the one that a file has
            "texts": ["reference", "hypothesis"],  # the columns of the pair; "a|b" as above
            "scores": True,  # always
            "size": 2000,  # grammar: training pairs
        },
        "vocab": {"size": 8000},  # of an encoder that stays random
        "train": {"batch_tokens": 64, "early_stopping_metric": "pearson"},  # pairs a batch; pearson | spearman | loss
    },
    "tag": {
        "encoder": ENCODER,
        "data": {
            **TAGGED,
            "max_length": 128,  # pieces of a row, special ones included; a longer sentence becomes several
            "num_buckets": 6,
        },
        "loss": {"label_smoothing": 0.0},
        "eval": {"batch_tokens": 4096},  # pieces, padding included
        "train": {"batch_tokens": 1024, "early_stopping_metric": "f1"},  # f1 | precision | recall | accuracy | loss
    },
    "span": {
        "encoder": ENCODER,
        "data": {
            "corpus": "grammar",  # grammar (the German of an English sentence) | files
            "directory": "",  # files: the folder of them
            "train": "train.json",  # as SQuAD 1.1, plain or .gz
            "dev": "dev.json",  # empty: the articles of one fold of the training file
            "fold": 0,
            "folds": 10,
            "size": 500,  # grammar: training questions
            "max_length": 384,  # pieces of a row, special ones included
            "max_question": 64,  # pieces of a question; the end of a longer one is cut off
            "stride": 128,  # pieces between the starts of two windows over a longer context
            "num_buckets": 6,
        },
        "loss": {"label_smoothing": 0.0},
        "eval": {"batch_tokens": 4096},  # pieces, padding included
        "decode": {
            "max_answer": 30,  # pieces of an answer
            "n_best": 20,  # answers that are weighed against each other
            "average": 1,  # the mean of the last n checkpoints answers
        },
        "train": {"batch_tokens": 3072, "early_stopping_metric": "f1"},  # f1 | exact_match | loss
    },
    "pretrain": {
        "data": {
            **DOCUMENTS,
            "dev_share": 0.05,  # of the documents, held out all over the files
            "size": 4000,  # grammar: training sentences
            "max_length": 128,  # tokens of a row, [CLS] and [SEP] included
            "cache": "",  # prepared texts; empty = $NMT_JAX_CACHE or ~/.cache/nmt-jax
        },
        "vocab": {
            "algorithm": "wordpiece",  # wordpiece | unigram
            "size": 8000,
            "lower_case": True,
            "model": "",  # a folder with tokenizer.json or vocab.txt, given instead of trained
        },
        "corrupt": {
            "share": 0.15,  # of the tokens, that are asked about
            "mask": 0.8,  # of these, that become [MASK]
            "random": 0.1,  # of these, that become any piece; the rest stays what it is
            "whole_words": False,  # all pieces of a word or none
        },
        "initialization": "normal",  # normal | mimetic: attention begins with what is near; for small models
        "eval": {"batch_tokens": 8192},
        "train": {"early_stopping_metric": "perplexity"},
        # perplexity (of masked tokens) | mlm_loss | mlm_accuracy | nsp_accuracy | loss
    },
    "bidirectional_language_model": {
        "data": {
            **LINES,  # words between blanks
            "block_length": 32,  # words that a model sees in one piece
        },
        "vocab": {"min_count": 2, "size": 1_000_000},  # words that are predicted; all are read, by their characters
        "loss": {"num_sampled": 0},  # words that the softmax is over in training (Jean et al., 2015); 0 = all
        "eval": {
            "context": 16,  # every word is predicted after at least so many, where there are as many
            "batch_tokens": 4096,
        },
        "train": {"early_stopping_metric": "perplexity"},  # perplexity | loss: of both directions
    },
    "feature_tagger": {
        "data": {
            **TAGGED,
            "max_length": 128,  # words of a row; a longer sentence becomes several
            "num_buckets": 6,
            "vectors": "",  # a file of word vectors, such as GloVe's
            "elmo": "",  # the workdir of a bidirectional language model, whose layers are features
            "cache": "",  # stored features; empty = $NMT_JAX_CACHE or ~/.cache/nmt-jax
        },
        "vocab": {"size": 0},  # learned vectors that words share by their hash; 0 = none
        "loss": {"label_smoothing": 0.0},
        "eval": {"batch_tokens": 4096},  # words, padding included
        "train": {"batch_tokens": 1024, "early_stopping_metric": "f1"},  # f1 | precision | recall | accuracy | loss
    },
    "word_vectors": {
        "data": {
            **DOCUMENTS,
            "dev_share": 0.01,  # of the documents, held out all over the files
            "size": 20_000,  # grammar: training sentences
            "tokenizer": "intl",  # of words: none (white space) | 13a | intl (punctuation apart) | zh | char
            "lower_case": True,
            "punctuation": False,  # what has neither letter nor digit is a word, too
            "subsample": 1e-3,  # the more of its occurrences a word loses, the more its share is above this; 0 = off
            "block_length": 24,  # centres that share their negatives
            "cache": "",  # prepared texts; empty = $NMT_JAX_CACHE or ~/.cache/nmt-jax
        },
        "vocab": {"min_count": 5, "size": 1_000_000},  # the most frequent words, as many as come so often
        "loss": {
            "negatives": 5,  # how much those of a pair weigh
            "shared_negatives": 16,  # drawn for a block
            "power": 0.75,  # of the counts that they are drawn by
        },
        "train": {"early_stopping_metric": "loss"},
    },
}

SMOKE = {  # what `smoke` makes of it: embedded text, and little of it
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
        "encoder": {"place": "", "num_layers": 1, "d_model": 16, "d_ff": 32, "vocab_size": 400, "dtype": "float32"},
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
        "encoder": {"place": "", "num_layers": 1, "d_model": 16, "d_ff": 32, "vocab_size": 400, "dtype": "float32"},
        "data": {"corpus": "grammar", "size": 100, "max_length": 32, "num_buckets": 1},
        "eval": {"batch_tokens": 2048},
    },
    "span": {
        "encoder": {"place": "", "num_layers": 1, "d_model": 16, "d_ff": 32, "vocab_size": 400, "dtype": "float32"},
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


def base(model_name: str = "transformer", task: str = "translate") -> ConfigDict:
    """A small pre-norm Transformer that translates the embedded corpus, or another of MODELS, for another of TASKS."""
    config = ConfigDict({"task": task, "model_name": model_name, "seed": 0, "init_from": ""})  # init_from: a workdir
    config.model = ConfigDict(MODELS[model_name])
    config.update(copy.deepcopy(RUN))
    config.update(copy.deepcopy(TASKS[task]))
    return config.lock()


def parse_arg(arg: str, **defaults: Any) -> types.SimpleNamespace:
    """`size=base,smoke=true` over `defaults`, each value read as its default's type; ValueError if one is unknown."""
    values = dict(defaults)
    for item in filter(None, arg.split(",")):
        name, equals, text = item.partition("=")
        if name not in defaults:
            near = difflib.get_close_matches(name, defaults, n=1) or list(defaults)
            raise ValueError(f"unknown argument {name!r}; did you mean {' or '.join(near)}?")
        if isinstance(defaults[name], bool):
            if text.lower() not in ("true", "false"):
                raise ValueError(f"argument {name} takes true or false, not {text!r}")
            values[name] = text.lower() == "true"
        elif not equals:
            raise ValueError(f"argument {name} needs a value: {name}={defaults[name]}")
        else:
            values[name] = type(defaults[name])(text)
    return types.SimpleNamespace(**values)


def smoke(config: ConfigDict) -> ConfigDict:
    """The same experiment in small, for a test: one step of a tiny model on a few embedded sentences."""
    config.model.update(SMALL[config.model_name])
    config.update(SMOKE[config.task])
    config.train.update(
        steps=1, batch_tokens=512, log_every=1, eval_every=1, checkpoint_every=1, keep_last=1, minutes=0.0
    )
    return config
