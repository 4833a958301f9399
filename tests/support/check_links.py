#!/usr/bin/env python3
"""Checks the links of Markdown files without network access.

    check_links.py FOLDER [FILE...]

Checks every Markdown file below FOLDER, or only the given files, which are relative to FOLDER. The target
of a link must exist and must not be outside of FOLDER. If a link has an anchor, the target must have a heading
with that anchor, computed by GitHub's rule. Links to web sites are not checked. Exit codes: 0 all links
work, 1 a link does not work.
"""
from __future__ import annotations

import re
import sys
from functools import lru_cache
from pathlib import Path
from urllib.parse import unquote

INLINE = re.compile(r"\[[^\]\[]*(?:\[[^\]]*\][^\]\[]*)*\]\(\s*<?([^\s)>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
REFERENCE = re.compile(r"^ {0,3}\[[^\]]+\]:\s*<?([^\s>]+)>?", re.M)
HTML = re.compile(r"<(?:img|a)\b[^>]*?\b(?:src|href)=\"([^\"]+)\"", re.I)
HEADING = re.compile(r"^ {0,3}(#{1,6})\s+(.*?)\s*#*\s*$")
NAMED = re.compile(r"<a\s+(?:id|name)=\"([^\"]+)\"")


def without_code(text: str) -> str:
    """Replaces code blocks and inline code by spaces, and keeps the line numbers."""
    lines, fence = [], None
    previous_blank, in_indented = True, False
    for line in text.split("\n"):
        mark = re.match(r"\s*(```+|~~~+)", line)
        if fence:
            if mark and mark.group(1).startswith(fence):
                fence = None
            lines.append("")
        elif mark:
            fence = mark.group(1)
            lines.append("")
        else:
            indented = line.startswith("    ") and (previous_blank or in_indented)
            lines.append("" if indented else line)
            in_indented = indented or (in_indented and not line.strip())
            previous_blank = not line.strip()
    return re.sub(r"(`+)(?!`)(.+?)(?<!`)\1(?!`)", lambda m: " " * len(m.group(0)), "\n".join(lines))


def slug(heading: str) -> str:
    """Returns GitHub's anchor for a heading."""
    heading = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


@lru_cache(maxsize=None)
def anchors(path: Path) -> frozenset[str]:
    """Returns the anchors of the headings of a Markdown file."""
    found: dict[str, int] = {}
    names: set[str] = set()
    text, fence = path.read_text(), False
    for line in text.split("\n"):
        if re.match(r"\s*(```|~~~)", line):
            fence = not fence
        match = None if fence else HEADING.match(line)
        if match:
            name = slug(match.group(2))
            names.add(name if name not in found else f"{name}-{found[name]}")
            found[name] = found.get(name, 0) + 1
    return frozenset(names | set(NAMED.findall(text)))


def check(path: Path, root: Path) -> list[str]:
    """Returns a message for every link of a file that does not work."""
    text = without_code(path.read_text())
    problems = []
    for pattern in (INLINE, REFERENCE, HTML):
        for match in pattern.finditer(text):
            link = match.group(1)
            if re.match(r"[a-z][a-z0-9+.-]*:", link, re.I):
                continue
            line = text.count("\n", 0, match.start(1)) + 1
            where = f"{path.relative_to(root)}:{line}: {link}"
            name, _, anchor = link.partition("#")
            target = (path.parent / unquote(name)).resolve() if name else path
            if root not in (target, *target.parents):
                problems.append(f"{where}: the target is outside of the folder")
            elif not target.exists():
                problems.append(f"{where}: the target does not exist")
            elif anchor and target.suffix == ".md" and unquote(anchor) not in anchors(target):
                problems.append(f"{where}: the target has no heading with this anchor")
    return problems


def main(arguments: list[str]) -> int:
    root = Path(arguments[0]).resolve()
    files = [root / name for name in arguments[1:]] or sorted(root.rglob("*.md"))
    problems = [problem for path in files for problem in check(path, root)]
    for problem in problems:
        print(problem)
    print(f"{len(files)} Markdown files, {len(problems)} links that do not work")
    return 1 if problems or not files else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
