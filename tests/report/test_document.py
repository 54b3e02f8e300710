"""The code of the page about watching runs, and leaves the files that it speaks of."""

from tests.test_examples import python_blocks


def test_code_in_the_document_runs(tmp_path, monkeypatch, capsys):
    blocks = python_blocks("docs/watching.md")
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "documentation"}
    for line, code in blocks:
        exec(compile("\n" * line + code, "<docs/watching.md>", "exec"), namespace)
    made = {path.name for path in tmp_path.iterdir()}
    assert made == {"run.jsonl", "report.html", "convergence.png", "time.png", "partition.png"}
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "converged"
    assert printed[1].startswith("best after ")
    assert printed[-1].startswith("32 converged ")
