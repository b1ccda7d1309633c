# SPDX-License-Identifier: Apache-2.0
"""Loads the solvers that place waiting requests in batches.

Only this module imports them, and only where [backlog]batch_mode is not
"off", as they need more packages.
"""

import dataclasses
import time

from oslo_log import log as logging

from nova_preempt import exceptions
from nova_preempt.backlog import backlog_options_from_conf
from nova_preempt.core.batch import solver_choice

LOG = logging.getLogger(__name__)

_LEAST_S = 0.001


def load(options, monotonic=time.monotonic):
    """Return a BatchPlannerFactory, None where requests are placed one by one.

    :param options: [backlog] of the configuration
    :raises InvalidConfiguration: its requirements are not installed
    """
    found = backlog_options_from_conf.batch_options(options)
    if found is None:
        return None
    try:
        solver_choice.make(found)
    except solver_choice.NotInstalled as exc:
        raise exceptions.InvalidConfiguration(
            f'[backlog]batch_mode is {options.batch_mode}: {exc}') from exc
    return BatchPlannerFactory(found, monotonic)


class BatchPlannerFactory:
    """Makes the planners of batches.

    :param options: a core.batch.batch_model.Options
    :param monotonic: returns seconds of a clock that is never set
    """

    def __init__(self, options, monotonic):
        self._options = options
        self._monotonic = monotonic

    def planner(self, groups=None):
        """Return a core.backlog.batch_plans.BatchPlanner for one pass.

        :param groups: {core group_placement.key(): core Group} of requests
        """
        # NOTE: it imports numpy, which an engine without batches lacks.
        from nova_preempt.core.batch import backlog_batch

        end = self._monotonic() + self._options.time_limit_s

        def next_placer():
            left_s = end - self._monotonic()
            if left_s < _LEAST_S:
                return None
            return solver_choice.make(dataclasses.replace(
                self._options, time_limit_s=left_s), self._monotonic)

        return _Careful(backlog_batch.Planner(next_placer, groups))


class _Careful:
    """Falls back to no plan where amounts cannot be computed with."""

    def __init__(self, planner):
        self._planner = planner
        self._why = ''

    def plan(self, requests, rooms):
        if not self._why:
            try:
                return self._planner.plan(requests, rooms)
            except ValueError as exc:
                self._why = f'The amounts cannot be computed with: {exc}'
                LOG.warning('Requests are placed one by one in this pass: '
                            '%(exc)s', {'exc': exc})
        return {request.uuid: self._why for request in requests}
