# SPDX-License-Identifier: Apache-2.0
"""The options of an operator as the rules take them."""

from nova_preempt.core.backlog import backlog_controller
from nova_preempt.core.backlog import boot_outcome
from nova_preempt.core.backlog import pass_values
from nova_preempt.core.backlog import queue_order
from nova_preempt.core.batch import batch_model

OFF = 'off'

#: The part of the time between two passes that solvers may take in one, so
#: that a pass is not late.
SOLVER_SHARE = 0.4
# So much longer than Nova's answer is waited for something may be under way.
_PATIENCE = 3


def boot_options(options):
    """A core.backlog.boot_outcome.Options.

    :param options: [backlog] of the configuration
    """
    return boot_outcome.Options(undecided_s=_PATIENCE * options.ask_timeout_s)


def controller_options(options):
    """A core.backlog.backlog_controller.Options, of the same."""
    return backlog_controller.Options(
        pass_values.Options(hold_after_s=options.hold_after_s),
        boot_options(options), options.pass_interval_s)


def batch_options(options):
    """A core.batch.batch_model.Options, of the same; None: one by one."""
    if options.batch_mode == OFF:
        return None
    return batch_model.Options(
        mode=options.batch_mode,
        time_limit_s=SOLVER_SHARE * options.pass_interval_s)


def order_options(options, claims=None):
    """A core.backlog.queue_order.Options, of the same.

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
    return queue_order.Options(weights, options.patience_s, claims)
