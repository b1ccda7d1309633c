# SPDX-License-Identifier: Apache-2.0
"""Writes results as one HTML file, which loads nothing and runs no scripts.

All texts are escaped: names of policies, classes and flavors are of users.
"""

import base64
from collections.abc import Iterable, Sequence
import html

from nova_preempt.pictures import drawing

_HEAD = '''<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; \
img-src data:; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width">
<title>{0}</title>
<style>
body {{ font-family: sans-serif; margin: 2em auto; max-width: 60em;
       padding: 0 1em; }}
img {{ max-width: 100%; }}
table {{ border-collapse: collapse; }}
td, th {{ border-bottom: 1px solid #ccc; padding: .2em .8em;
         text-align: right; }}
td:first-child, th:first-child {{ text-align: left; }}
pre {{ background: #f4f4f4; overflow: auto; padding: 1em; }}
</style></head>
<body><h1>{0}</h1>
'''


def page(title: str, sections: Iterable[tuple[str, str]]) -> str:
    """Return a file.

    :param sections: (heading, HTML of table(), picture() or text())
    """
    return _HEAD.format(html.escape(title)) + ''.join(
        f'<h2>{html.escape(heading)}</h2>\n{body}\n'
        for heading, body in sections) + '</body></html>\n'


def table(rows: Sequence[Sequence[str]]) -> str:
    """Return a table; the first row has the names of the columns."""
    return '<table>\n{}</table>'.format(''.join(
        '<tr>{}</tr>\n'.format(''.join(
            f'<{tag}>{html.escape(cell)}</{tag}>' for cell in row))
        for tag, row in zip(
            ('th', *['td'] * len(rows)), rows, strict=False)))


def picture(plot: drawing.Plot) -> str:
    """Return a picture; raises as drawing.write()."""
    told = '; '.join((plot.title, *(panel.title for panel in plot.panels)))
    data = base64.b64encode(drawing.svg(plot)).decode('ascii')
    return (f'<img alt="{html.escape(told)}" '
            f'src="data:image/svg+xml;base64,{data}">')


def text(content: str) -> str:
    """Return a text with its lines as they are."""
    return f'<pre>{html.escape(content)}</pre>'
