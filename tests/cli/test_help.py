"""--help, completion and the man page are made from the same options."""

import os
import re
import shutil

import pytest

from tests.commands import ROOT, execute


def commands(stepladder):
    listed = stepladder("--help").stdout.partition("Subcommands:")[2]
    return re.findall(r"^  ([a-z]+) ", listed, re.M)


def test_help_has_short_lines_defaults_and_examples(stepladder):
    text = stepladder("bench", "--help").stdout
    assert "--repetitions INT:2 to 1000=11" in text
    assert "Examples:\n  stepladder bench matmul" in text
    for command in commands(stepladder):
        for line in stepladder(command, "--help").stdout.splitlines():
            # Names and their types do not break.
            assert len(line) <= 100 or line.startswith("  -"), line


def test_the_examples_are_accepted(stepladder):
    """Options of examples exist: a command line with --help behind them is parsed up to it."""
    for command in commands(stepladder):
        text = stepladder(command, "--help").stdout
        options = set(re.findall(r"--[a-z-]+", text.partition("Examples:")[0]))
        assert set(re.findall(r" (--[a-z-]+)", text.partition("Examples:")[2])) <= options, command


@pytest.mark.parametrize("words, expected", [
    (["ben"], ["bench"]),
    (["bench", "--plug"], ["--plugin"]),
    (["bench", "max"], ["max_pool"]),
    (["compare", "--thresh"], ["--threshold"]),
    (["bench", "--plugin", "lib"], ["libmine.so"]),
])
def test_bash_completes_commands_options_primitives_and_files(stepladder, tmp_path, words,
                                                              expected):
    (tmp_path / "libmine.so").touch()
    script = tmp_path / "completion"
    script.write_text(stepladder("completion", "bash").stdout)
    typed = " ".join(f"'{word}'" for word in ("stepladder", *words))
    done = execute("bash", "-c", f"source '{script}'; COMP_WORDS=({typed}); "
                   f"COMP_CWORD={len(words)}; _stepladder; "
                   'printf "%s\\n" "${COMPREPLY[@]}"', cwd=tmp_path)
    assert done.stdout.split() == expected


def test_the_man_page_names_every_command_and_its_options(stepladder):
    page = stepladder("completion", "man").stdout
    for command in commands(stepladder):
        assert f".SS {command}\n" in page
    assert "\\-\\-repetitions" in page and not re.search(r"^'", page, re.M)
    if shutil.which("groff"):
        execute("groff", "-man", "-Tutf8", "-ww", input=page, lines=0)


def test_zsh_reads_the_completion(stepladder):
    text = stepladder("completion", "zsh").stdout
    assert text.startswith("#compdef stepladder\n") and "complete -F _stepladder stepladder" in text


def test_make_install_puts_the_program_and_what_explains_it(program_path, tmp_path):
    """The rule alone: the build is not made again."""
    execute("make", "-s", "-o", "build", "install", f"PREFIX={tmp_path}/usr", cwd=ROOT,
            env=os.environ | {"BUILD": str(program_path.parent)})
    assert {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()} == {
        "usr/bin/stepladder", "usr/share/bash-completion/completions/stepladder",
        "usr/share/zsh/site-functions/_stepladder", "usr/share/man/man1/stepladder.1"}
    execute(tmp_path / "usr/bin/stepladder", "list", "matmul")
