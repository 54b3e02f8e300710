"""A headless Chromium that looks at pages, for tests."""

import html
import json
import re
import shutil
import subprocess

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium found to open the page with")
_FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr"]
_FLAGS += ["--no-first-run", "--disable-extensions", "--virtual-time-budget=2000"]
SECONDS = 120


def _run(folder, *arguments):
    # A profile of its own, so that tests may run side by side.
    command = [CHROMIUM, *_FLAGS, f"--user-data-dir={folder / 'profile'}", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)


def complaints(done):
    """What the page wrote to its console."""
    return [line for line in done.stderr.splitlines() if ":CONSOLE" in line]


def looked_at(folder, page, probe, width=390, height=4000, dark=False):
    """What a piece of JavaScript, a function of the page's window, finds out about the page in a frame of that width.

    In a frame because a window of Chromium has at least 500 pixels. Returns its result and the console's complaints.
    """
    frame = f"width:{width}px;height:{height}px;border:0"
    wrapper = folder / f"frame-{width}{'-dark' if dark else ''}.html"
    wrapper.write_text(
        f'<!doctype html><meta charset="utf-8"><body style="margin:0"><iframe style="{frame}" srcdoc="'
        f'{html.escape(page)}"></iframe><pre id="found"></pre><script>'
        "document.querySelector('iframe').addEventListener('load', async (event) => {"
        f"const probe = {probe};"
        "const found = await probe(event.target.contentWindow);"
        "document.getElementById('found').textContent = JSON.stringify(found);});</script>",
        encoding="utf-8",
    )
    dark_mode = ["--force-dark-mode"] if dark else []
    done = _run(folder, *dark_mode, "--dump-dom", wrapper.as_uri())
    found = re.search(r'<pre id="found">(.*?)</pre>', done.stdout, flags=re.DOTALL)
    text = found.group(1) if found else ""
    assert text, done.stdout[-2000:] + done.stderr[-2000:]
    return json.loads(html.unescape(text)), complaints(done)


def opened(folder, path):
    """The text of the page's document after its scripts have run, and the console's complaints."""
    done = _run(folder, "--window-size=1280,900", "--dump-dom", path.as_uri())
    assert done.returncode == 0, done.stderr
    return done.stdout, complaints(done)


def photographed(folder, path, name, size, dark=False):
    """A picture of the page."""
    place = folder / f"{name}.png"
    dark_mode = ["--force-dark-mode"] if dark else []
    _run(folder, *dark_mode, f"--window-size={size[0]},{size[1]}", f"--screenshot={place}", path.as_uri())
    return place
