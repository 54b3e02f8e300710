"""Commands that the documentation and the help show can be given so, and its Python code runs."""

import re
import shlex
from importlib import import_module
from pathlib import Path

import pytest

from parablock.cli import COMMANDS, module_of

DOCUMENT = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text(encoding="utf-8")


def shown_commands(text):
    """What is run by the lines that begin with a command or run one in a pipe, as lists of arguments."""
    for line in text.splitlines():
        for part in line.split("#")[0].split("|"):
            found = re.search(r"(?:^|mpiexec -n \d+ )\s*parablock (\w+ .*)$", part.split(">")[0].strip())
            if found and "[options]" not in part:
                yield shlex.split(re.split(r"\s{3,}", found.group(1))[0])


def code_blocks(text):
    return "\n".join(re.findall(r"^```\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE))


def test_commands_of_the_documentation_are_understood(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shown = list(shown_commands(code_blocks(DOCUMENT)))
    assert {arguments[0] for arguments in shown} >= set(COMMANDS) - {"demo", "warm-up"}
    for command, *arguments in shown:
        import_module(module_of(command)).make_parser().parse_args(arguments)


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_of_the_help_are_understood(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    parser = import_module(module_of(command)).make_parser()
    shown = list(shown_commands(parser.epilog or ""))
    assert len(shown) >= 3 or command in ("info", "report", "warm-up", "demo")
    for name, *arguments in shown:
        assert name == command
        parser.parse_args(arguments)


def test_every_option_of_train_and_predict_is_documented():
    for command in ("train", "predict"):
        parser = import_module(module_of(command)).make_parser()
        options = {option for action in parser._actions for option in action.option_strings if option.startswith("--")}
        missing = {option for option in options - {"--help"} if option not in DOCUMENT}
        assert not missing


@pytest.mark.slow
def test_python_code_runs(capsys):
    for code in re.findall(r"^```python\n(.*?)^```$", DOCUMENT, flags=re.DOTALL | re.MULTILINE):
        exec(compile(code, "docs/command-line.md", "exec"), {})
    assert capsys.readouterr().out == "(2, 2) ['iris' 'rose'] ['length', 'width']\n"


def test_commands_about_flowers_do_what_they_say(parablock):
    rows = "".join(f"{place % 7},{place % 5},{'iris' if place % 2 else 'rose'}\n" for place in range(40))
    Path("flowers.csv").write_text("length,width,species\n" + rows)
    texts = [code_blocks(DOCUMENT), *(import_module(module_of(name)).make_parser().epilog for name in COMMANDS)]
    shown = [arguments for text in texts for arguments in shown_commands(text or "") if "flowers.csv" in arguments]
    assert {arguments[0] for arguments in shown} == {"train", "convert"}
    for arguments in shown:
        done = parablock(*arguments)
        assert done.status == 0, (arguments, done.err)
