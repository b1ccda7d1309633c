# SPDX-License-Identifier: Apache-2.0
"""Small evaluations of papers, and their stored results.

A run takes some seconds, so that "make test" can compare the figures with
those of the code. "make reproduced" has this module store a run.
"""

import fractions
import json
import pathlib
import time
from unittest import mock

from nova_preempt.simulator.papers import climate
from nova_preempt.simulator.papers import ecsched
from nova_preempt.simulator.papers import figures
from nova_preempt.simulator.papers import opie
from nova_preempt.simulator.papers import qos
from nova_preempt.simulator.papers import qos_comparison
from nova_preempt.simulator.papers import qos_experiment

_PATH = pathlib.Path(__file__).with_suffix('.json')


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


if __name__ == '__main__':
    _PATH.write_text(json.dumps({paper: rows(run()) for paper, run in
                                 RUNS.items()}, indent=1) + '\n',
                     encoding='utf-8')
