# SPDX-License-Identifier: Apache-2.0
"""Small evaluations of papers, and their stored results.

A run takes some seconds, so that "make test" can compare the figures with
those of the code. "make reproduced" has this module store a run.
"""

import dataclasses
import fractions
import json
import pathlib
import time
from unittest import mock

from nova_preempt.pictures import drawing
from nova_preempt.simulator.papers import climate
from nova_preempt.simulator.papers import ecsched
from nova_preempt.simulator.papers import figures
from nova_preempt.simulator.papers import opie
from nova_preempt.simulator.papers import qos
from nova_preempt.simulator.papers import qos_comparison
from nova_preempt.simulator.papers import qos_experiment
from nova_preempt.simulator.papers import sla

_PATH = pathlib.Path(__file__).with_suffix('.json')
_PICTURES = _PATH.with_name('pictures.json')


def _scaled(module, scale):
    return module.run(scale, 1, time.process_time)


def _qos():
    """Run fewer requests and no validations, to save time."""
    outcome = qos_experiment.Outcome({
        name: [fractions.Fraction(each) for each in ('1', '1/2', '0')]
        for name in ('gold', 'silver', 'bronze')}, 0, 1)
    with mock.patch.object(qos, '_validations', return_value=[outcome]), (
            mock.patch.object(qos_comparison.Workload, 'requests', 20)):
        return _scaled(qos, 0.1)


#: {paper: function that returns its PaperEvaluation}; sla is quick as a whole.
RUNS = {
    'opie': lambda: _scaled(opie, 0.05),
    'climate': lambda: _scaled(climate, 0.05),
    'ecsched': lambda: _scaled(ecsched, 0.012),
    'qos': _qos,
}


def rows(evaluation):
    """Return [[name, ours]] of the figures that are no times."""
    return [[each.name, figures.text(each.ours)]
            for each in evaluation.figures if not each.is_time]


def stored():
    """Return {paper: rows} of the last stored run."""
    return json.loads(_PATH.read_text(encoding='utf-8'))


def stored_pictures():
    """Return {paper: drawing.Plots} of the last stored run."""
    return {paper: [drawing.Plot(**{**plot, 'panels': [
        drawing.Panel(**{**panel, 'series': [
            drawing.FigureSeries(**series) for series in panel['series']]})
        for panel in plot['panels']]}) for plot in plots]
        for paper, plots in json.loads(
            _PICTURES.read_text(encoding='utf-8')).items()}


if __name__ == '__main__':
    found = {paper: run() for paper, run in RUNS.items()}
    _PATH.write_text(json.dumps({
        paper: rows(each) for paper, each in found.items()}, indent=1) + '\n',
        encoding='utf-8')
    found['sla'] = _scaled(sla, 1)
    _PICTURES.write_text(json.dumps({
        paper: [dataclasses.asdict(plot) for plot in each.plots]
        for paper, each in found.items()}, default=list) + '\n',
        encoding='utf-8')
