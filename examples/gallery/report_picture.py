"""Take the picture of a report's top that the README shows, with a headless Chromium.

Measures the scenario `saturated`, opens its page, and writes docs/pictures/report.png from the top
to the end of the first figure. Run in gradlab's own environment, with Chromium installed (or its
path in CHROMIUM); it takes half a minute:

    python examples/gallery/report_picture.py
"""

from __future__ import annotations

import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image

ROOT = Path(__file__).resolve().parents[2]
PICTURE = ROOT / "docs/pictures/report.png"
WIDTH, MARGIN = 1100, 6  # pixels
COLORS = 255
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
SWITCHES = ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars")
# Asked of a copy of the page, whose own policy permits no script but its own.
POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')
QUESTION = """<script>document.body.dataset.end =
document.querySelector("figure .picture").getBoundingClientRect().bottom</script>"""


def browser() -> str:
    """Path of the browser."""
    named = os.environ.get("CHROMIUM")
    found = named or next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        sys.exit(f"no browser found: none of {', '.join(NAMES)}, and CHROMIUM is not set")
    return found


def opened(page: Path, height: int, *how: str) -> str:
    """Open a page; what the browser prints."""
    with tempfile.TemporaryDirectory() as profile:
        window = (f"--window-size={WIDTH},{height}", f"--user-data-dir={profile}")
        command = [browser(), *SWITCHES, *window, *how, page.as_uri()]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stdout


def end_of_first_figure(page: Path) -> int:
    """Height of the page down to the lower edge of its first figure, in pixels."""
    copy = page.with_name("asking.html")
    text = POLICY.sub("", page.read_text(encoding="utf-8"))
    copy.write_text(text.replace("</body>", f"{QUESTION}</body>"), encoding="utf-8")
    found = re.search(r'data-end="([\d.]+)"', opened(copy, 900, "--dump-dom"))
    if found is None:
        sys.exit(f"{page} has no figure: expected one as gradlab report writes it")
    return math.ceil(float(found[1]))


def main() -> None:
    """Measure, open, and save the picture in few colors."""
    with tempfile.TemporaryDirectory() as scratch:
        run = Path(scratch) / "saturated"
        words = ["report", "saturated", "--quiet", "-o", str(run)]
        subprocess.run(
            [sys.executable, "-m", "gradlab_cli", *words],
            cwd=ROOT,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        shot = Path(scratch) / "shot.png"
        height = end_of_first_figure(run / "report.html") + MARGIN
        opened(run / "report.html", height, f"--screenshot={shot}")
        picture = Image.open(shot).convert("RGB").crop((0, 0, WIDTH, height))
        how: Any = {"method": Image.Quantize.MAXCOVERAGE, "kmeans": 2, "dither": Image.Dither.NONE}
        picture.quantize(COLORS, **how).save(PICTURE, optimize=True)
    print(f"{PICTURE.relative_to(ROOT)}: {WIDTH} by {height}, {PICTURE.stat().st_size} bytes")


if __name__ == "__main__":
    main()
