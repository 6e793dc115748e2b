"""Links of the repository's documents, made absolute for places that have no repository around them."""

from __future__ import annotations

import re


def absolute(text: str, version: str, repository: str) -> str:
    """Markdown whose relative links lead to the files of this version in the repository with this address."""

    def link(found: re.Match[str]) -> str:
        path = found[1]
        if path.startswith("../../"):  # of the site that shows the repository
            return f"]({repository}/{path.removeprefix('../../')})"
        return f"]({repository}/{'raw' if path.endswith('.svg') else 'blob'}/v{version}/{path})"

    return re.sub(r"\]\((?!https?://|#)([^()\s]+)\)", link, text)
