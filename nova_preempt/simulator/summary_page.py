# SPDX-License-Identifier: Apache-2.0
"""Writes a simulation as one HTML file: pictures, tables and settings."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from nova_preempt.pictures import drawing
from nova_preempt.pictures import html_page
from nova_preempt.simulator import summary_tables


def page(settings: Mapping[str, str], options: Mapping[str, Mapping[str, str]],
         summaries: Iterable[Mapping[str, Any]],
         pictures: Sequence[drawing.Plot], cloud: str) -> str:
    """Return the file; raises as drawing.write().

    :param settings: {argument: value}
    :param options: {name of a policy: {option: value that it sets}}
    :param summaries: of the policies, in their order
    :param cloud: the description of the cloud
    """
    names = sorted({name for each in options.values() for name in each})
    return html_page.page('Simulation', [
        *((each.title, html_page.picture(each)) for each in pictures),
        ('Results', html_page.table(summary_tables.cells(
            list(options), summaries))),
        ('Options of the policies', html_page.table([['', *options], *(
            [name, *(each.get(name, 'default') for each in options.values())]
            for name in names)])),
        ('Settings', html_page.table([('', 'value'), *settings.items()])),
        ('Cloud', html_page.text(cloud))])
