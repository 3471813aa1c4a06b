"""Keys that several tasks share: one key, or a group of them."""

from nmt_jax.schema.key import Key, choice, count, layers, rate, share, width

SMALLEST_VOCAB = 5  # four special pieces and one more
LABEL_SMOOTHING = rate(0.0, "Label smoothing.")
CACHE = Key("", "Folder of prepared data; empty = $NMT_JAX_CACHE or ~/.cache/nmt-jax.")
NUM_BUCKETS = count(6, "Number of batch shapes.", high=1000)
MAX_ROW = 1_048_576
BYTE_FALLBACK = Key(True, "Spell unseen characters as bytes instead of <unk>; not for word.")
SUBWORDS = choice("unigram", "Kind of the vocabulary.", "unigram", "bpe", "word", "character")
VOCAB_SIZE = count(8000, "Size of the vocabulary.", "pieces", low=SMALLEST_VOCAB)
VOCAB_MODEL = Key("", "Existing SentencePiece .model; empty = train one.")
SAMPLE_LINES = count(2_000_000, "Number of random lines that the vocabulary is trained on, the same for every seed.")
TOKENIZER_HELP = "Word tokenizer: none (white space), 13a, intl, zh, char or another of BLEU."
DECODE_DTYPES = ("model", "float32", "bfloat16", "int8")
TAG_MEASURES = ("f1", "precision", "recall", "accuracy", "loss")
FOLDS: dict[str, Key] = {
    "fold": count(0, "Which fold to hold out.", low=0),
    "folds": count(10, "Number of folds.", low=2),
}


def measure(default: str, *choices: str) -> Key:
    """Returns the key `train.early_stopping_metric` of a task."""
    return choice(default, "Measure of the development set that selects the best checkpoint.", *choices)


def eval_tokens(default: int, unit: str) -> Key:
    """Returns the key `eval.batch_tokens`."""
    return count(default, "Size of a batch of the evaluation, including padding.", unit)


def train_tokens(default: int, unit: str) -> Key:
    """Returns the key `train.batch_tokens` of a task that counts other units than target tokens."""
    return count(default, "Size of the global batch, including padding.", unit)


def directory(kind: str) -> Key:
    """Returns the key `data.directory`."""
    return Key("", f"{kind}: folder of the files.")


def max_row(default: int, help_text: str, unit: str = "pieces", low: int = 1) -> Key:
    """Returns the key of a maximum length."""
    return count(default, help_text, unit, low=low, high=MAX_ROW)


AVERAGE = count(1, "Number of last checkpoints whose mean is used; 1 = the best checkpoint instead.", high=10_000)

ENCODER: dict[str, Key] = {  # the encoder to fine-tune
    "place": Key("", "Hugging Face folder, installed package that contains one, or workdir; empty = a random encoder."),
    "keep_layers": layers(0, "Layers of the pretrained encoder to keep, from the first one; 0 = all.", low=0),
    "num_layers": layers(2, "Layers of the random encoder."),
    "d_model": width(128, "Width of the random encoder."),
    "d_ff": width(512, "Width of the hidden layer of the feed-forward blocks of the random encoder."),
    "num_heads": count(2, "Attention heads of the random encoder.", high=4096),
    "vocab_size": count(8000, "Vocabulary of the random encoder.", "pieces", low=SMALLEST_VOCAB),
    "layers": Key(
        *("last", "last, mixture (learned weights over all; Peters et al., 2018), or 4 (last four, concatenated).")
    ),
    "frozen": Key(False, "Do not update the encoder."),
    "dropout": rate(0.1, "Dropout of the encoder."),
    "dtype": choice(*("float32", "Type of activations and products; parameters stay float32.", "float32", "bfloat16")),
}

SPEC_AUGMENT: dict[str, Key] = {  # of training rows (Park et al., 2019)
    "frequency_masks": count(0, "Bands of columns that are masked in each training source; 0 = none.", low=0, high=100),
    "frequency_width": count(27, "Widest band of columns.", "columns", high=262_144),
    "time_masks": count(0, "Bands of rows that are masked in each training source; 0 = none.", low=0, high=100),
    "time_width": count(100, "Widest band of rows.", "rows", high=MAX_ROW),
    "time_share": share(1.0, "Widest band of rows as a fraction of all rows of the source."),
}

CURRICULUM: dict[str, Key] = {  # competence-based curriculum learning (Platanios et al., 2019)
    "difficulty": choice(
        *("none", "Begin with easy examples, of few pieces (length) or frequent ones (rarity)."),
        *("none", "length", "rarity"),
    ),
    "schedule": choice(
        *("square_root", "Growth of the share of examples that are drawn from."),
        *("linear", "square_root"),
    ),
    "growth_steps": count(2000, "Steps until all examples are in use.", "steps"),
    "initial_competence": Key(0.01, "Share of the easiest examples to begin with.", above=0, high=1),
}

LINES: dict[str, Key] = {  # text for language models, one unit per line
    "corpus": choice("grammar", "Corpus: grammar (German side) or text.", "grammar", "text"),
    "directory": directory("text"),
    "train": Key("train.txt", "text: training file."),
    "dev": Key("", "text: development file; empty = the last dev_share of the lines of the training file."),
    "test": Key("", "text: test file; empty = the last test_share of the training file, after the dev lines."),
    "dev_share": share(0.1, "Fraction of the lines for dev."),
    "test_share": share(0.0, "Fraction of the lines for test."),
    "size": count(20_000, "grammar: number of training lines."),
}

TAGGED: dict[str, Key] = {  # tagged words
    "corpus": choice("grammar", "Corpus: grammar (person and place names) or files.", "grammar", "files"),
    "directory": directory("files"),
    "train": Key("train.conll", "files: one word per line with its columns; a blank line separates sentences."),
    "dev": Key("dev.conll", "files: development file; empty = hold out one fold of the training file."),
    **FOLDS,
    "word_column": Key(0, "Index of the column; 0 = first, -1 = last.", low=-1000, high=1000),
    "tag_column": Key(-1, "Index of the column; 0 = first, -1 = last.", low=-1000, high=1000),
    "scheme": choice(
        "bio", "bio (every entity starts with B-), iob1 (B- only after an entity of the same type).", "bio", "iob1"
    ),
    "size": count(2000, "grammar: number of training sentences."),
}

DOCUMENTS: dict[str, Key] = {  # text in documents
    "corpus": choice(
        "grammar", "Corpus: grammar (German and English documents in alternation) or text.", "grammar", "text"
    ),
    "directory": directory("text"),
    "train": Key([], "Files with one sentence or paragraph per line and a blank line after each document."),
    "running": Key([], "Files of running text, such as books; blank lines separate paragraphs."),
    "paragraphs": count(40, "Number of paragraphs of running text that form one document.", low=2),
}
