"""The code of the page about watching runs, and leaves the files that it speaks of."""

from tests.documents import DOCS, blocks


def test_code_in_the_document_runs(tmp_path, monkeypatch, capsys):
    code = [block for block in blocks(DOCS / "watching.md") if block.language == "python"]
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "documentation"}
    for block in code:
        exec(compile("\n" * block.line + block.code, "<docs/watching.md>", "exec"), namespace)
    made = {path.name for path in tmp_path.iterdir()}
    assert made == {"run.jsonl", "search.jsonl", "report.html", "convergence.png", "time.png", "partition.png"}
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "converged"
    assert printed[1].startswith("best after ")
    assert printed[-1].startswith("32 converged ")
