# SPDX-License-Identifier: Apache-2.0
"""The directive "metrics": a table of the Prometheus metrics of a module."""

from docutils import statemachine
import prometheus_client
from sphinx.util import docutils

from nova_preempt import metrics


class Metrics(docutils.SphinxDirective):
    """Lists the metrics of the services."""

    def run(self):
        self.env.note_dependency(metrics.__file__)
        return self.parse_text_to_nodes(statemachine.StringList(
            list(page(metrics)), metrics.__file__))


def page(module):
    """The lines of the table."""
    yield from ('.. list-table::', '   :header-rows: 1',
                '   :widths: 45 10 45', '')
    yield from ('   * - Metric', '     - Type', '     - Meaning')
    for metric in vars(module).values():
        if isinstance(metric, prometheus_client.metrics.MetricWrapperBase):
            yield f'   * - ``{name(metric)}``'
            yield f'     - {metric._type}'
            yield f'     - {metric._documentation}'


def name(metric):
    """The name of a metric with its labels, as Prometheus has it."""
    text = metric._name + ('_total' if metric._type == 'counter' else '')
    labels = ','.join(metric._labelnames)
    return f'{text}{{{labels}}}' if labels else text


def setup(app):
    """Called by Sphinx."""
    app.add_directive('metrics', Metrics)
    return {'parallel_read_safe': True, 'parallel_write_safe': True}
