# SPDX-License-Identifier: Apache-2.0
"""Host weighers."""

from nova.scheduler import weights
from oslo_log import log as logging

LOG = logging.getLogger(__name__)


class HostWeightHandler(weights.HostWeightHandler):
    """Finds the weigher classes of this package."""


def all_weighers():
    """Our weigher classes, for [filter_scheduler]weight_classes."""
    return HostWeightHandler().get_all_classes()


def ranks(values):
    """Return {value: number of smaller values}."""
    return {value: rank for rank, value in enumerate(sorted(set(values)))}


def ranked(values):
    """Return the rank of each value as its weight; see unless_equal()."""
    by_value = ranks(values)
    return unless_equal([by_value[value] for value in values])


def unless_equal(found):
    """Return the weights, [] if all are equal.

    Those would change nothing, for Nova makes 0 of them; but it looks at each
    host to find that out, and at no host if there is no weight.
    """
    return found if len(set(found)) > 1 else []


def check(weighers):
    """Warn if those that preemption counts on are not among these."""
    names = {type(weigher).__name__ for weigher in weighers}
    for name in ('PreemptionWeigher', 'PreemptionCostWeigher'):
        if name not in names:
            LOG.warning('%s is not among [filter_scheduler]weight_classes: '
                        'hosts are not chosen by the cost of their victims.',
                        name)
