"""Default hyperparameters (`config.model`) of every model, by `config.model_name`, and tiny ones for tests.

The linen modules in `nmt_jax/models/` have the same defaults; a test compares the two.
"""

from typing import Any

# Shared by the document and the sentence classifier.
CLASSIFIER: dict[str, Any] = {
    "cell": "gru",  # lstm | gru | rnn
    "num_layers": 1,  # recurrent layers per encoder
    "d_embedding": 100,
    "d_hidden": 100,  # width of the encoder states; each direction has half of it
    "d_attention": 100,
    "dropout": 0.5,
    "variational_dropout": False,  # use one mask for all steps of a sequence (Gal and Ghahramani, 2016)
    "word_dropout": 0.0,  # fraction of the vocabulary hidden from each document
    "dtype": "float32",  # of activations and products: float32 | bfloat16; parameters stay float32
}

MODELS: dict[str, dict[str, Any]] = {
    "transformer": {
        "num_encoder_layers": 3,
        "num_decoder_layers": 3,
        "d_model": 256,
        "d_ff": 1024,
        "num_heads": 4,
        "d_k": 0,  # width of the queries and keys of each head; 0 = d_model / num_heads
        "d_v": 0,  # width of the values of each head; 0 = d_model / num_heads
        "dropout": 0.1,  # on residual branches and embeddings
        "attention_dropout": 0.0,  # on attention weights
        "relu_dropout": 0.0,  # on the hidden layer of the feed-forward blocks
        "positions": "sinusoidal",  # sinusoidal | learned
        "max_positions": 1024,
        "tie_embeddings": "three-way",  # three-way (source, target, output) | two-way (target, output) | none
        "norm": "pre",  # layer normalization: pre | post
        "activation": "relu",  # relu | gelu | swiglu
        "dtype": "float32",  # of activations and products: float32 | bfloat16; parameters stay float32
        "remat": False,  # recompute layers in the backward pass: less memory, about a third more time
    },
    "rnn": {
        "cell": "lstm",  # lstm | gru | rnn | lstmn (encoder with intra-attention; the decoder uses an lstm)
        "num_encoder_layers": 1,
        "num_decoder_layers": 1,
        "d_embedding": 256,
        "d_hidden": 512,  # width of every layer; each direction of a bidirectional encoder has half of it
        "bidirectional": True,  # of the encoder
        "residual": False,  # add residual connections around layers whose input and output widths are equal
        "dropout": 0.2,
        "variational_dropout": False,  # use one mask for all steps of a sequence (Gal and Ghahramani, 2016)
        "decoder": "luong",  # luong (attend with the new state) | bahdanau (attend with the old state)
        "attention": "global",  # none | global | local-m | local-p
        "score": "general",  # dot | scaled_dot | general | reduced_rank | additive | concat
        "d_attention": 256,  # hidden units of additive and concat, rank of reduced_rank
        "window": 10,  # half-width D of the window of local attention
        "input_feeding": True,  # feed the attentional state to the next step (luong)
        "context_every_step": False,  # append the last encoder output to every decoder input
        "bridge": "transform",  # initial decoder state: zero | copy | transform | mean
        "combination": "concat",  # how several sources are combined: concat | flat | hierarchical
        "share_encoder": False,  # use one encoder for all sources instead of one per source
        "copying": "none",  # copy source words: none | pointer (mixture of two distributions) | copynet (one softmax)
        "max_unknown": 50,  # maximum number of out-of-vocabulary words per line that can be copied
        "lexicon_epsilon": 0.001,  # probability assigned to pairs that are missing from vocab.lexicon
        "tie_embeddings": "none",  # three-way (source, target, output) | two-way (target, output) | none
        "dtype": "float32",
    },
    "rnn_lm": {
        "cell": "lstm",  # lstm | gru | rnn
        "num_layers": 1,
        "d_embedding": 200,
        "d_hidden": 200,  # width of every layer
        "dropout": 0.5,
        "variational_dropout": True,  # use one mask for all steps of a block (Gal and Ghahramani, 2016)
        "tie_embeddings": True,  # share the input and output embeddings
        "pointer_window": 0,  # number of recent words the pointer can copy (Merity et al., 2017); 0 = no pointer
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
        "norm": "post",  # post (GPT, 2018) | pre (GPT-2, 2019)
        "activation": "gelu",  # gelu (tanh approximation) | gelu_erf (exact) | relu | swiglu
        "dtype": "float32",
        "remat": False,  # recompute layers in the backward pass: less memory, about a third more time
    },
    "han": CLASSIFIER,  # num_layers: of the word encoder and of the sentence encoder
    "sentence_classifier": CLASSIFIER,
    "sentence_head": {  # on a pretrained encoder; one output per row
        "pooling": "mean",  # of the token states: mean | first | pair (two texts: u, v, |u - v|, u * v)
        "dropout": 0.1,  # on the input of the head
    },
    "siamese_head": {"pooling": "mean", "dropout": 0.0},  # on a pretrained encoder; encodes two texts separately
    "piece_head": {"dropout": 0.1},  # on a pretrained encoder; one output per token
    "mlp": {"num_layers": 1, "d_hidden": 256, "dropout": 0.1},  # ReLU layers on top of features; 0 layers = linear
    "bert": {
        "num_layers": 12,
        "d_model": 768,
        "d_ff": 3072,
        "num_heads": 12,
        "max_positions": 512,
        "activation": "gelu_erf",  # gelu_erf (exact) | gelu (tanh approximation) | relu
        "dropout": 0.1,  # on residual branches and embeddings
        "attention_dropout": 0.1,
        "next_sentence": True,  # add the next-sentence prediction loss
        "init_stddev": 0.02,  # standard deviation of the initial weights; narrower models need a larger value
        "causal": False,  # left-to-right language model instead of masked tokens; requires next_sentence=False
        "dtype": "float32",  # of products: float32 | bfloat16; sums and parameters stay float32
        "remat": False,  # recompute layers in the backward pass: less memory, about a third more time
    },
    "elmo": {
        "max_characters": 20,  # bytes per word, including the two boundary marks; longer words are truncated
        "d_character": 16,
        "widths": [1, 2, 3, 4, 5],  # widths of the convolutions over characters
        "filters": [32, 32, 64, 128, 128],  # number of filters of each width
        "num_highways": 2,
        "num_layers": 2,
        "d_hidden": 512,  # memory cells per layer and direction
        "d_projection": 128,  # width of the word vectors and of the layer outputs of each direction
        "dropout": 0.1,
        "dtype": "float32",
    },
    "feature_tagger": {
        "d_word": 50,  # width of the learned word vectors
        "d_hidden": 100,  # width of the biLSTM, half of it per direction; 0 = no biLSTM
        "layers": "mixture",  # ELMo layers: mixture (learned weights; Peters et al., 2018) | 0 (words) | 1 | ...
        "dropout": 0.5,
    },
    "word_vectors": {
        "algorithm": "skip_gram",  # skip_gram | cbow
        "d_model": 100,
        "window": 5,  # context words on each side
        "num_buckets": 0,  # hash buckets for character n-grams; 0 = no n-grams
        "min_n": 3,  # shortest character n-gram, including the word boundaries "<" and ">"
        "max_n": 6,  # longest character n-gram
    },
}

TINY_CLASSIFIER = {"num_layers": 1, "d_embedding": 16, "d_hidden": 16, "d_attention": 16}

# Changes for `smoke=true`.
TINY_MODELS: dict[str, dict[str, Any]] = {
    "transformer": {"num_encoder_layers": 1, "num_decoder_layers": 1, "d_model": 16, "d_ff": 32, "num_heads": 2}
    | {"d_k": 0, "d_v": 0},
    "rnn": {"num_encoder_layers": 1, "num_decoder_layers": 1, "d_embedding": 16, "d_hidden": 16, "d_attention": 16},
    "rnn_lm": {"num_layers": 1, "d_embedding": 16, "d_hidden": 16},
    "gpt": {"num_layers": 1, "d_model": 16, "d_ff": 32, "num_heads": 2, "max_positions": 64},
    "han": TINY_CLASSIFIER,
    "sentence_classifier": TINY_CLASSIFIER,
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
