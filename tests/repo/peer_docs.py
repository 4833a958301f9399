#!/usr/bin/env python3
"""Tests that MkDocs builds the web site of docs/ without warnings, and that it finds a broken link.

Exit codes: 0 success, 1 failure, 77 skipped because MkDocs is not installed.
"""
from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

try:
    import mkdocs    # noqa: F401
except ImportError as missing:
    print("skipped:", missing)
    sys.exit(77)

ROOT = Path(os.environ["BJ_ROOT"])


def build(config: Path) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", str(config),
               "--site-dir", str(Path("site").resolve())]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def main() -> int:
    done = build(ROOT / "mkdocs.yml")
    print("".join(line for line in done.stdout.splitlines(True) if "INFO" not in line), end="")
    if done.returncode or "WARNING" in done.stdout:
        print("FAILED: the web site does not build without warnings")
        return 1
    pages = len(list((ROOT / "docs").rglob("*.md")))
    built = len([page for page in Path("site").rglob("*.html") if page.name not in ("404.html", "search.html")])
    if built != pages:
        print(f"FAILED: {built} pages were built from {pages} Markdown files")
        return 1
    shutil.copy(ROOT / "mkdocs.yml", "mkdocs.yml")
    shutil.copytree(ROOT / "docs", "docs")
    with open("docs/FAQ.md", "a") as page:
        page.write("\n[broken](GLOSSARY.md#no-such-heading)\n")
    if build(Path("mkdocs.yml")).returncode == 0:
        print("FAILED: a link to a missing heading was accepted")
        return 1
    print(f"{pages} pages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
