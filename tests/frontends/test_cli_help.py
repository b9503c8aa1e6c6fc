"""The help of the command line: each command has examples, each example is a command line that can be read."""

import os
import shlex
import subprocess
import sys

import pytest

from tokbatch.frontends.cli import app

COMMANDS = app.commands


def examples(text):
    """Command lines in a help text, without what a shell does about them."""
    for line in (text or "").splitlines():
        if line.strip().startswith("tokbatch "):
            yield shlex.split(line.strip().split(" | ")[0].split(" < ")[0])[1:]


@pytest.mark.parametrize("name", COMMANDS)
def test_the_examples_of_a_command_can_be_read(name):
    found = list(examples(COMMANDS[name].help))
    assert found
    for given, *arguments in found:
        assert given == name
        with COMMANDS[name].make_context(name, arguments) as context:
            assert context.params


def test_the_examples_of_the_whole_can_be_read():
    found = list(examples(app.help))
    assert len(found) >= 5
    for name, *arguments in found:
        assert COMMANDS[name].make_context(name, arguments).params
    assert "130" in app.help


@pytest.mark.parametrize(
    ("shell", "words", "expected"),
    [
        ("bash", {"COMP_WORDS": "tokbatch ex", "COMP_CWORD": "1"}, "explain"),
        ("zsh", {"COMP_WORDS": "tokbatch ver", "COMP_CWORD": "1"}, "verify"),
        ("fish", {"COMP_WORDS": "tokbatch run", "COMP_CWORD": "--res"}, "--resume"),
    ],
)
def test_a_shell_completes(shell, words, expected):
    done = subprocess.run(
        [sys.executable, "-c", "from tokbatch.frontends.cli import main; main()"],
        capture_output=True,
        text=True,
        env={**os.environ, "_TOKBATCH_COMPLETE": f"{shell}_complete", **words},
        check=False,
    )
    assert expected in done.stdout, done.stderr
