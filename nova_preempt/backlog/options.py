# SPDX-License-Identifier: Apache-2.0
"""The options of an operator as the rules take them."""

from nova_preempt.core.backlog import boot_outcome
from nova_preempt.core.backlog import controller
from nova_preempt.core.backlog import order as core_order
from nova_preempt.core.backlog import passes
from nova_preempt.core.batch import model as batch

OFF = 'off'

#: The part of the time between two passes that solvers may take in one, so
#: that a pass is not late.
SOLVER_SHARE = 0.4
# So much longer than Nova's answer is waited for something may be under way.
_PATIENCE = 3


def lifecycle(options):
    """A core.backlog.boot_outcome.Options.

    :param options: [backlog] of the configuration
    """
    return boot_outcome.Options(
        undecided_s=_PATIENCE * options.ask_timeout_s)


def controlling(options):
    """A core.backlog.controller.Options, of the same."""
    return controller.Options(
        passes.Options(hold_after_s=options.hold_after_s),
        lifecycle(options), options.pass_interval_s)


def placing(options):
    """A core.batch.model.Options, of the same; None: one by one."""
    if options.batch_mode == OFF:
        return None
    return batch.Options(
        mode=options.batch_mode,
        time_limit_s=SOLVER_SHARE * options.pass_interval_s)


def order(options, claims=None):
    """A core.backlog.order.Options, of the same.

    :param claims: what classes of service say, None where there are none
    :raises ValueError: a weight is no whole number
    """
    weights = {}
    for name, text in options.priority_weights.items():
        try:
            weights[name] = int(text)
        except ValueError:
            raise ValueError(
                f'[backlog]priority_weights has {text!r} for {name}, which '
                'is no whole number') from None
    return core_order.Options(weights, options.patience_s, claims)
