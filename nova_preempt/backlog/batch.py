# SPDX-License-Identifier: Apache-2.0
"""Placing requests together, for who wants that: it needs more than the rest.

What does it is loaded here alone, and only where [backlog]batch_mode is not
"off".
"""

import dataclasses
import time

from oslo_log import log as logging

from nova_preempt import exceptions
from nova_preempt.backlog import options as backlog_options
from nova_preempt.core.batch import choice

LOG = logging.getLogger(__name__)

_LEAST_S = 0.001


def load(options, monotonic=time.monotonic):
    """A Batch, None where requests are placed one by one.

    :param options: [backlog] of the configuration
    :raises InvalidConfiguration: what it needs is not installed
    """
    found = backlog_options.placing(options)
    if found is None:
        return None
    try:
        choice.make(found)
    except choice.NotInstalled as exc:
        raise exceptions.InvalidConfiguration(
            f'[backlog]batch_mode is {options.batch_mode}: {exc}') from exc
    return Batch(found, monotonic)


class Batch:
    """Places requests together.

    :param options: a core.batch.model.Options
    :param monotonic: a clock in seconds
    """

    def __init__(self, options, monotonic):
        self._options = options
        self._monotonic = monotonic

    def planner(self, groups=None):
        """A core.backlog.planning.Planner for one pass.

        :param groups: {core groups.key(): core Group} of who waits
        """
        # It imports numpy, which an engine without batches does without.
        from nova_preempt.core.batch import waiting

        end = self._monotonic() + self._options.time_limit_s

        def next_placer():
            left_s = end - self._monotonic()
            if left_s < _LEAST_S:
                return None
            return choice.make(dataclasses.replace(
                self._options, time_limit_s=left_s), self._monotonic)

        return _Careful(waiting.Planner(next_placer, groups))


class _Careful:
    """Plans nothing where something is wrong with the numbers."""

    def __init__(self, planner):
        self._planner = planner
        self._why = ''

    def plan(self, requests, rooms):
        if not self._why:
            try:
                return self._planner.plan(requests, rooms)
            except ValueError as exc:
                self._why = f'What is asked for cannot be computed: {exc}'
                LOG.warning('Requests are placed one by one in this pass: '
                            '%(exc)s', {'exc': exc})
        return {request.uuid: self._why for request in requests}
