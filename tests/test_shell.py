"""The reader of shell commands agrees with the shell."""

import subprocess

import pytest

from tests.shell import SUBSTITUTED, Command, commands


def words(text):
    return [command.words for command in commands(text)]


def test_words_and_quotes():
    assert words('a \'b c\'d "e \\"f\\" g" h\\ i \'\' ""') == [["a", "b cd", 'e "f" g', "h i", "", ""]]
    assert words("a=1 b --c='d e' f#g") == [["b", "--c=d e", "f#g"]]
    assert words("a --b=[1,2] 'x??-y' {c}") == [["a", "--b=[1,2]", "x??-y", "{c}"]]


def test_comments_and_lines():
    assert commands("a b   # why\n# alone\nc \\\n  d # 'one\ne") == [
        Command(["a", "b"], "# why"),
        Command(["c", "d"], "# 'one"),
        Command(["e"]),
    ]


def test_lists_pipes_and_redirections():
    assert words("a < b > c 2>&1 | d - >> e && f || g; h & i") == [["a"], ["d", "-"], ["f"], ["g"], ["h"], ["i"]]
    assert words("a 2> b 5 <<'END' | c\nd 'e\nEND\nf") == [["a", "5"], ["c"], ["f"]]


def test_subshells_and_substitutions():
    assert words("(a b; c) > d; e") == [["a", "b"], ["c"], ["e"]]
    assert words('a "$(b | c)" <(d e) f') == [["b"], ["c"], ["d", "e"], ["a", SUBSTITUTED, SUBSTITUTED, "f"]]


def test_loops_and_variables():
    assert words("for x in one two; do a $x ${x}_b; done; c $x.d '$x' $y") == [
        ["a", "one", "one_b"],
        ["c", "one.d", "$x", "$y"],
    ]
    assert words('T="a --b"\nS=\'c d\'\n$T "$S" $U') == [["a", "--b", "c d", "$U"]]
    assert words("if a; then b; else c; fi; while d; do e; done") == [["a"], ["b"], ["c"], ["d"], ["e"]]


@pytest.mark.parametrize(
    "line",
    [
        "a 'b'\"c\"d\\e \"f\\g\\\\\" 'h\\'",
        "x='p q'; a $x \"$x\" pre$x'post'",
        'a --flag=\'["one", "two:4"]\' \\\n  b',
        'a "$(echo)"b;',
    ],
)
def test_words_are_those_of_the_shell(line):
    shell = subprocess.run(
        ["bash", "-c", "a() { printf '%s\\n' a \"$@\"; }; echo() { printf " + SUBSTITUTED + "; }\n" + line],
        capture_output=True,
        text=True,
        check=True,
    )
    assert words(line)[-1] == shell.stdout.splitlines()
