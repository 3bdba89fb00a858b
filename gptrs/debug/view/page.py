"""The page of a view: one HTML file with its data, script and style, which loads nothing.

The document is gzipped JSON in base64: listings of kernels are large and compress tenfold. The
browser inflates it (``DecompressionStream``).
"""

from __future__ import annotations

import base64
import gzip
import html
import json
from functools import cache
from pathlib import Path
from typing import Any

_ASSETS = Path(__file__).with_name("assets")
_TEMPLATE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none';
script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<noscript>This page draws a program with JavaScript, which is switched off.</noscript>
<div id="app"></div>
<script id="document" type="application/gzip;base64">{data}</script>
<script>{script}</script>
</body>
</html>
"""


def page(document: dict[str, Any]) -> str:
    """The HTML page of ``document`` (see `gptrs.debug.view.document`)."""
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    data = base64.b64encode(gzip.compress(text.encode(), 6, mtime=0)).decode()
    return _TEMPLATE.format(
        title=html.escape(f"{document['name']} · gptrs"),
        style=_asset("view.css"),
        data=data,
        script=_asset("view.js"),
    )


@cache
def _asset(name: str) -> str:
    return (_ASSETS / name).read_text(encoding="utf-8")
