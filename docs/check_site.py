"""Check that the built pages need no network: nothing is fetched, and the search has its index."""

from __future__ import annotations

import re
import sys
from pathlib import Path

FETCHED = re.compile(
    r"<(?:script|link|img|iframe|source|video|audio)\b[^>]*\b(?:src|href)=[\"']?((?:https?:)?//[^\"'\s>]+)"
)
STYLED = re.compile(r"(?:url\(|@import\s+)[\"']?((?:https?:)?//[^\"')\s]+)")
# What the search reads where the pages are opened from a disk.
SEARCH = ("search/search_index.js", "js/iframe-worker.js")


def faults(site: Path) -> list[str]:
    """What the pages and styles would fetch, a line each."""
    found = []
    for file in sorted([*site.rglob("*.html"), *site.rglob("*.css")]):
        text = file.read_text(encoding="utf-8")
        found += [f"{file}: {address}" for address in FETCHED.findall(text) + STYLED.findall(text)]
    return found


if __name__ == "__main__":
    pages = Path(sys.argv[1])
    problems = faults(pages)
    problems += [f"{pages} lacks {name}" for name in SEARCH if not (pages / name).is_file()]
    if not any(pages.rglob("*.html")):
        problems = [f"{pages} holds no page"]
    print(*(problems or ["No page fetches anything from elsewhere"]), sep="\n")
    sys.exit(1 if problems else 0)
