"""`nmt-jax ngram`: estimates an n-gram language model from a text, or converts one to another format."""

from collections.abc import Sequence

from absl import flags

from nmt_jax.commands import streams
from nmt_jax.data.lines import num_lines
from nmt_jax.errors import UserError
from nmt_jax.ngram.counts import count
from nmt_jax.ngram.files import read_model, writer_of
from nmt_jax.ngram.kneser_ney import estimate, parse_fallback
from nmt_jax.progress import print_table
from nmt_jax.schema.number_flags import define_integer

ORDER = 5


def define_flags(flag_values: flags.FlagValues) -> None:
    """Define the flags of `nmt-jax ngram`."""
    streams.define_input_flag(flag_values, ": lines of words separated by blanks")
    define_integer(flag_values, "order", ORDER, "Length of the longest n-grams.", low=1, high=20)
    help_text = "Write this file: .arpa or .arpa.gz, text that other programs read, or .ngram, a binary file."
    flags.DEFINE_string("output", None, help_text, flag_values)
    help_text = (
        "Discounts for counts of 1, 2 and at least 3, such as 0.5,1,1.5, of orders for which the text is too little to "
        "compute them; default: an error."
    )
    flags.DEFINE_list("discount_fallback", None, help_text, flag_values)
    help_text = "Instead of a text, read this model, .arpa, .arpa.gz or .ngram, and write it as --output."
    flags.DEFINE_string("convert", None, help_text, flag_values)
    streams.define_overwrite_flag(flag_values)


def main(flag_values: flags.FlagValues, positional: Sequence[str]) -> int:
    """Write the model of a text; on stderr the number of n-grams and the discounts of each order."""
    streams.check_no_arguments("ngram", positional)
    if not flag_values.output:
        raise UserError("nmt-jax ngram needs --output=FILE.arpa, FILE.arpa.gz or FILE.ngram")
    write = writer_of(flag_values.output)
    streams.check_new(flag_values, flag_values.output)
    if flag_values.convert:
        streams.check_effect(flag_values, ["input", "order", "discount_fallback"], False, "with --convert")
        write(read_model(flag_values.convert), flag_values.output)
        return 0
    fallback = parse_fallback(flag_values.discount_fallback) if flag_values.discount_fallback else None
    name, lines = flag_values.input or "stdin", streams.open_lines(flag_values.input)
    counts = count(lines, flag_values.order, name=name, total=num_lines(flag_values.input))
    try:
        model, discounts = estimate(counts, fallback)
    except UserError as error:
        raise UserError(f"{name}: {error}") from None
    write(model, flag_values.output)
    rows = zip(model.trie.sizes, discounts, strict=True)
    table = [
        (f"{order}-grams", f"{size:,}, discounts {' '.join(f'{one:.4f}' for one in three)}")
        for order, (size, three) in enumerate(rows, start=1)
    ]
    print_table(table)
    return 0
