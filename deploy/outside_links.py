"""A preprocessor of mdbook: links that leave docs/ lead to the repository, and links to a folder to its index.

In the repository both work as they stand; on the site there is nothing outside docs/, and a folder is no page.
"""

import json
import posixpath
import re
import sys
from pathlib import Path

REPOSITORY = "https://github.com/decree-dev/decree"
LINK = re.compile(r"(\]\()([^)\s]+)(\))")
ROOT = Path(__file__).resolve().parents[1]


def main():
    if sys.argv[1:2] == ["supports"]:
        return
    _, book = json.load(sys.stdin)
    for item in book["items"]:
        rewrite(item)
    json.dump(book, sys.stdout)


def rewrite(item):
    """Rewrites a chapter and those below it."""
    chapter = item.get("Chapter") if isinstance(item, dict) else None
    if chapter is None:
        return
    folder = posixpath.dirname(posixpath.join("docs", chapter["source_path"] or ""))
    parts = chapter["content"].split("```")
    prose = [LINK.sub(lambda found: found[1] + target(folder, found[2]) + found[3], part) for part in parts[::2]]
    parts[::2] = prose
    chapter["content"] = "```".join(parts)
    for below in chapter["sub_items"]:
        rewrite(below)


def target(folder, link):
    """Returns where a link of a page in a folder leads on the site."""
    path, hash, anchor = link.partition("#")
    if "://" in link or not path:
        return link
    place = posixpath.normpath(posixpath.join(folder, path))
    is_folder = (ROOT / place).is_dir()
    if posixpath.commonpath(["docs", place]) == "docs":
        page = posixpath.join(path, "README.md") if is_folder else path
        # mdbook calls what is a README in the repository the index of its folder.
        return re.sub(r"\bREADME\.md$", "index.md", page) + hash + anchor
    return f"{REPOSITORY}/{'tree' if is_folder else 'blob'}/main/{place}{hash}{anchor}"


if __name__ == "__main__":
    main()
