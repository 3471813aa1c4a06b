"""Keys of `config.model` by `config.model_name`, and tiny values for smoke tests.

The linen modules in `nmt_jax/models/` have the same defaults; a test compares the two.
"""

from typing import Any

from nmt_jax.schema.key import Key, choice, count, layers, rate, width

DTYPE = choice("float32", "Type of activations and products; parameters and sums stay float32.", "float32", "bfloat16")
REMAT = Key(
    "none",
    "Recompute in the backward pass: nothing, whole layers (full: least memory, about a third more time), or what lies "
    "between the products with parameters (dots).",
    choices=("none", "full", "dots"),
    renamed={"false": "none", "true": "full"},
)
SCAN_LAYERS = Key(
    False, "Compile one layer for all in a loop: for accelerators, where compilation is long; same parameters."
)
TYING = choice(
    *("none", "Shared embeddings: three-way (source, target, output), two-way (target, output)."),
    *("three-way", "two-way", "none"),
)
VARIATIONAL = Key(False, "Use one dropout mask for all steps of a sequence (Gal and Ghahramani, 2016).")
HEADS = count(4, "Number of attention heads.", high=4096)
POSITIONS = count(512, "Longest sequence.", "positions", high=1_048_576)
DROPOUT = rate(0.1, "Dropout on residual branches and embeddings.")
ATTENTION_DROPOUT = rate(0.1, "Dropout on attention weights.")
BILSTM_LAYERS = layers(0, "Layers of a biLSTM between encoder and head (Devlin et al., 2019); 0 = none.", low=0)
IMAGES = {
    "image_encoder": choice(
        *("patches", "Encoder of images: patches (each is projected) or convolution (several layers of 3 x 3)."),
        *("patches", "convolution"),
    ),
    "convolution_width": width(32, "convolution: filters of the first layer; each further one has twice as many."),
}
HIDDEN_WORDS = rate(0.0, "Fraction of the words that the decoder does not see in training (Bowman et al., 2016).")
MAX_UNKNOWN = count(50, "Maximum number of out-of-vocabulary words per line that can be copied.", low=0)
ACTIVATIONS = ("relu", "gelu", "gelu_erf", "swiglu")

# Shared by the document and the sentence classifier.
CLASSIFIER: dict[str, Key] = {
    "cell": choice("gru", "Recurrent cell.", "lstm", "gru", "rnn"),
    "num_layers": layers(1, "Recurrent layers per encoder; `han` has an encoder of words and one of sentences."),
    "d_embedding": width(100, "Width of the embeddings."),
    "d_hidden": width(100, "Width of the encoder states; each direction has half of it."),
    "d_attention": width(100, "Hidden units of the attention."),
    "dropout": rate(0.5, "Dropout."),
    "variational_dropout": VARIATIONAL,
    "word_dropout": rate(0.0, "Fraction of the vocabulary hidden from each document."),
    "dtype": DTYPE,
}

MODELS: dict[str, dict[str, Key]] = {
    "transformer": {
        "num_encoder_layers": layers(3, "Layers of the encoder."),
        "num_decoder_layers": layers(3, "Layers of the decoder."),
        "subsampling_layers": count(
            0, "Convolutions before the encoder, each of which halves the number of rows of features.", low=0, high=10
        ),
        "d_model": width(256, "Width of every layer."),
        "d_ff": width(1024, "Width of the hidden layer of the feed-forward blocks."),
        "num_heads": HEADS,
        "d_k": width(0, "Width of the queries and keys of each head; 0 = d_model / num_heads.", low=0),
        "d_v": width(0, "Width of the values of each head; 0 = d_model / num_heads.", low=0),
        "dropout": DROPOUT,
        "attention_dropout": rate(0.0, "Dropout on attention weights."),
        "relu_dropout": rate(0.0, "Dropout on the hidden layer of the feed-forward blocks."),
        "word_dropout": HIDDEN_WORDS,
        **IMAGES,
        "combination": choice(
            *("joint", "How several sources are combined; joint: each state of the encoder depends on all of them."),
            *("joint", "flat", "serial", "parallel", "hierarchical"),
        ),
        "positions": choice("sinusoidal", "Position embeddings.", "sinusoidal", "learned"),
        "max_positions": count(1024, "Longest sequence with positions=learned.", "positions", high=1_048_576),
        "tie_embeddings": choice("three-way", TYING.help, *TYING.choices),
        "norm": choice("pre", "Layer normalization before (pre) or after (post) each block.", "pre", "post"),
        "activation": choice("relu", "Activation of the feed-forward blocks.", *ACTIVATIONS),
        "copying": choice(
            *("none", "Copy source words: pointer (mixture of the softmax and the attention of the last layer)."),
            *("none", "pointer"),
        ),
        "copy_heads": count(0, "Heads of the last layer whose mean attention copies; 0 = all.", low=0, high=4096),
        "max_unknown": MAX_UNKNOWN,
        "dtype": DTYPE,
        "remat": REMAT,
        "scan_layers": SCAN_LAYERS,
    },
    "rnn": {
        "cell": choice(
            *("lstm", "Recurrent cell; lstmn is an encoder with intra-attention, its decoder uses an lstm."),
            *("lstm", "gru", "rnn", "lstmn"),
        ),
        "num_encoder_layers": layers(1, "Layers of the encoder."),
        "num_decoder_layers": layers(1, "Layers of the decoder."),
        "pyramid_layers": count(
            0,
            "Number of last encoder layers that read two neighbouring outputs of the layer below at a time (Chan et "
            "al., 2016), each of which halves the number of rows of features.",
            low=0,
            high=10,
        ),
        "d_embedding": width(256, "Width of the embeddings."),
        "d_hidden": width(512, "Width of every layer; each direction of a bidirectional encoder has half of it."),
        "bidirectional": Key(True, "The encoder reads in both directions."),
        "residual": Key(False, "Add residual connections around layers whose input and output widths are equal."),
        "dropout": rate(0.2, "Dropout."),
        "variational_dropout": Key(
            False, "Use one dropout mask for all steps of the embeddings and the encoder (Gal and Ghahramani, 2016)."
        ),
        "word_dropout": HIDDEN_WORDS,
        **IMAGES,
        "decoder": choice(
            "luong", "luong attends with the new state, bahdanau with the old state.", "luong", "bahdanau"
        ),
        "attention": choice(
            *(
                "global",
                "global: all places; local-m, local-p: a window around step t or a predicted place; hard: one drawn.",
            ),
            *("none", "global", "local-m", "local-p", "hard"),
        ),
        "score": choice(
            *("general", "Attention score."),
            *("dot", "scaled_dot", "general", "reduced_rank", "additive", "concat", "location"),
        ),
        "coverage": Key(False, "Scores read the sum of earlier attention (See et al., 2017); additive and concat."),
        "d_attention": width(256, "Hidden units of additive and concat, rank of reduced_rank, positions of location."),
        "window": count(10, "Half-width D of the window of local attention.", "positions"),
        "input_feeding": Key(True, "Feed the attentional state to the next step (luong)."),
        "context_every_step": Key(False, "Append the last encoder output to every decoder input."),
        "context_gate": Key(False, "Multiply the context of the attention by a learned gate (Xu et al., 2015)."),
        "bridge": choice(
            *(
                "transform",
                "zero; copy: last encoder state h; transform: tanh(W h + b); mean: the same of the mean of all.",
            ),
            *("zero", "copy", "transform", "mean"),
        ),
        "combination": choice(
            *(
                "concat",
                "concat: their contexts joined; flat: one attention to all; hierarchical: another to the contexts.",
            ),
            *("concat", "flat", "hierarchical"),
        ),
        "share_encoder": Key(False, "Use one encoder for all sources instead of one per source."),
        "copying": choice(
            *("none", "Copy source words: pointer (mixture of two distributions), copynet (one softmax)."),
            *("none", "pointer", "copynet"),
        ),
        "selective_read": Key(False, "The decoder also reads the states of the word copied last; copynet."),
        "max_unknown": MAX_UNKNOWN,
        "lexicon_epsilon": Key(
            0.001, "Probability assigned to pairs that are missing from vocab.lexicon.", above=0, high=1
        ),
        "tie_embeddings": TYING,
        "dtype": DTYPE,
    },
    "rnn_lm": {
        "cell": choice(
            "lstm", "Recurrent cell; lstmn attends to all earlier steps of a block.", "lstm", "gru", "rnn", "lstmn"
        ),
        "num_layers": layers(1, "Recurrent layers."),
        "d_embedding": width(200, "Width of the embeddings."),
        "d_hidden": width(200, "Width of every layer."),
        "dropout": rate(0.5, "Dropout."),
        "input_dropout": Key(-1.0, "Dropout on the word vectors; -1 = as dropout.", low=-1, below=1),
        "hidden_dropout": Key(-1.0, "Dropout between two layers; -1 = as dropout.", low=-1, below=1),
        "variational_dropout": Key(True, "Use one dropout mask for all steps of a block (Gal and Ghahramani, 2016)."),
        "word_dropout": rate(0.0, "Fraction of the vocabulary hidden from each row (Gal and Ghahramani, 2016)."),
        "weight_dropout": rate(0.0, "Fraction of the recurrent weights dropped from a block (Merity et al., 2018)."),
        "tie_embeddings": Key(True, "Share the input and output embeddings."),
        "pointer_window": count(
            0, "Number of recent words the pointer can copy (Merity et al., 2017); 0 = no pointer.", low=0
        ),
        "dtype": DTYPE,
    },
    "gpt": {
        "num_layers": layers(4, "Layers."),
        "d_model": width(256, "Width of every layer."),
        "d_ff": width(1024, "Width of the hidden layer of the feed-forward blocks."),
        "num_heads": HEADS,
        "dropout": DROPOUT,
        "attention_dropout": ATTENTION_DROPOUT,
        "max_positions": POSITIONS,
        "norm": choice("post", "Layer normalization: post (GPT, 2018) or pre (GPT-2, 2019).", "post", "pre"),
        "activation": choice("gelu", "Activation; gelu is the approximation by tanh, gelu_erf is exact.", *ACTIVATIONS),
        "epsilon": Key(1e-6, "Added to the variance in layer normalization; GPT-2 has 1e-5.", above=0, high=1),
        "scale_embeddings": Key(True, "Multiply the input embeddings by sqrt(d_model); GPT and GPT-2 do not."),
        "dtype": DTYPE,
        "remat": REMAT,
        "scan_layers": SCAN_LAYERS,
    },
    "han": CLASSIFIER,
    "sentence_classifier": CLASSIFIER,
    "sentence_head": {  # on a pretrained encoder; one output per row
        "pooling": choice(
            *("mean", "Pooling of the token states; pair, for two texts: u, v, |u - v|, u * v."),
            *("mean", "first", "pair"),
        ),
        "bilstm_layers": BILSTM_LAYERS,
        "dropout": rate(0.1, "Dropout on the input of the head."),
    },
    "siamese_head": {  # on a pretrained encoder; encodes two texts separately
        "pooling": choice("mean", "Pooling of the token states.", "mean", "first"),
        "dropout": rate(0.0, "Dropout on the pooled states."),
    },
    "estimator_head": {  # on a pretrained encoder; encodes a translation, its reference and its source separately
        "pooling": choice("mean", "Pooling of the token states.", "mean", "first"),
        "hidden_sizes": Key([384, 192], "Widths of the hidden layers of the estimator.", low=1, high=262_144),
        "dropout": rate(0.1, "Dropout before each layer of the estimator."),
    },
    "causal_head": {  # on a pretrained GPT; one output per row, from the state of its last token
        "both_orders": Key(False, "Read a pair of texts in both orders, and add the two states."),
        "dropout": rate(0.1, "Dropout on the input of the head."),
    },
    "piece_head": {  # on a pretrained encoder; one output per token
        "bilstm_layers": BILSTM_LAYERS,
        "dropout": rate(0.1, "Dropout on the input of the head."),
    },
    "dual_encoder": {
        "num_layers": layers(2, "Layers of each encoder; 0 = the mean of the embeddings.", low=0),
        "d_model": width(256, "Width of every layer."),
        "d_ff": width(1024, "Width of the hidden layer of the feed-forward blocks."),
        "num_heads": HEADS,
        "d_output": width(256, "Width of the vectors that are compared."),
        "dropout": DROPOUT,
        **IMAGES,
        "share_encoder": Key(False, "Use one encoder for both sides, such as paraphrases; needs vocab.joint=true."),
        "temperature": Key(0.07, "Temperature of the cosines; the first one if it is learned.", above=0, high=1000),
        "learn_temperature": Key(True, "Learn the temperature; it is at least 0.01."),
        "dtype": DTYPE,
    },
    "mlp": {
        "num_layers": layers(1, "ReLU layers on top of the features; 0 = a linear model.", low=0),
        "d_hidden": width(256, "Width of the layers."),
        "dropout": rate(0.1, "Dropout."),
    },
    "bert": {
        "num_layers": layers(12, "Layers."),
        "d_model": width(768, "Width of every layer."),
        "d_ff": width(3072, "Width of the hidden layer of the feed-forward blocks."),
        "num_heads": count(12, HEADS.help, high=4096),
        "max_positions": POSITIONS,
        "activation": choice(
            *("gelu_erf", "Activation; gelu is the approximation by tanh, gelu_erf is exact."),
            *("gelu_erf", "gelu", "relu"),
        ),
        "dropout": DROPOUT,
        "attention_dropout": ATTENTION_DROPOUT,
        "next_sentence": Key(True, "Add the next-sentence prediction loss."),
        "init_stddev": Key(
            0.02, "Standard deviation of the initial weights; narrower models need a larger value.", above=0, high=10
        ),
        "causal": Key(False, "Left-to-right language model instead of masked tokens; requires next_sentence=false."),
        "dtype": DTYPE,
        "remat": REMAT,
        "scan_layers": SCAN_LAYERS,
    },
    "elmo": {
        "max_characters": count(
            20,
            "Longest word, including the two boundary marks; longer words are truncated.",
            "bytes",
            low=3,
            high=10_000,
        ),
        "d_character": width(16, "Width of the character embeddings."),
        "widths": Key([1, 2, 3, 4, 5], "Widths of the convolutions over characters.", low=1, high=10_000),
        "filters": Key([32, 32, 64, 128, 128], "Number of filters of each width.", low=1, high=262_144),
        "num_highways": layers(2, "Highway layers after the convolutions.", low=0),
        "num_layers": layers(2, "LSTM layers per direction."),
        "d_hidden": width(512, "Memory cells per layer and direction."),
        "d_projection": width(128, "Width of the word vectors and of the layer outputs of each direction."),
        "dropout": rate(0.1, "Dropout."),
        "dtype": DTYPE,
    },
    "feature_tagger": {
        "d_word": width(50, "Width of the learned word vectors."),
        "d_hidden": width(100, "Width of the biLSTM, half of it per direction; 0 = no biLSTM.", low=0),
        "layers": Key("mixture", "ELMo layers: mixture (learned weights; Peters et al., 2018), 0 (words), 1, …"),
        "dropout": rate(0.5, "Dropout."),
    },
    "word_vectors": {
        "algorithm": choice("skip_gram", "Predict the context from a word, or the word.", "skip_gram", "cbow"),
        "d_model": width(100, "Width of the vectors."),
        "window": count(5, "Context words on each side.", "words", high=10_000),
        "num_buckets": count(0, "Hash buckets for character n-grams; 0 = no n-grams.", low=0),
        "min_n": count(3, 'Shortest character n-gram, including the word boundaries "<" and ">".', high=1000),
        "max_n": count(6, "Longest character n-gram.", high=1000),
    },
}

TINY_CLASSIFIER = {"num_layers": 1, "d_embedding": 16, "d_hidden": 16, "d_attention": 16}

# Changes for `smoke=true`.
TINY_MODELS: dict[str, dict[str, Any]] = {
    "transformer": {"num_encoder_layers": 1, "num_decoder_layers": 1, "d_model": 16, "d_ff": 32, "num_heads": 2}
    | {"d_k": 0, "d_v": 0, "copy_heads": 0, "convolution_width": 4},
    "rnn": {"num_encoder_layers": 1, "num_decoder_layers": 1, "d_embedding": 16, "d_hidden": 16, "d_attention": 16}
    | {"convolution_width": 4},
    "rnn_lm": {"num_layers": 1, "d_embedding": 16, "d_hidden": 16},
    "gpt": {"num_layers": 1, "d_model": 16, "d_ff": 32, "num_heads": 2, "max_positions": 64},
    "han": TINY_CLASSIFIER,
    "sentence_classifier": TINY_CLASSIFIER,
    "sentence_head": {},
    "siamese_head": {},
    "estimator_head": {"hidden_sizes": [16]},
    "causal_head": {"both_orders": False},
    "piece_head": {},
    "dual_encoder": {"num_layers": 1, "d_model": 16, "d_ff": 32, "num_heads": 2, "d_output": 16}
    | {"convolution_width": 4},
    "mlp": {"num_layers": 1, "d_hidden": 16},
    "bert": {"num_layers": 2, "d_model": 16, "d_ff": 32, "num_heads": 2, "max_positions": 64},
    "elmo": {"max_characters": 12, "d_character": 4, "widths": [1, 2], "filters": [8, 8], "d_hidden": 24}
    | {"d_projection": 12},
    "feature_tagger": {"d_hidden": 16},
    "word_vectors": {"d_model": 16},
}
