# SPDX-License-Identifier: Apache-2.0
"""Builds the core's options of the backlog from [backlog]."""

from nova_preempt.core.backlog import backlog_controller
from nova_preempt.core.backlog import boot_outcome
from nova_preempt.core.backlog import dispatch_values
from nova_preempt.core.backlog import queue_order
from nova_preempt.core.batch import batch_model

OFF = 'off'

#: The share of the time between two passes that solvers may use in a pass, so
#: that it is not late.
SOLVER_SHARE = 0.4
# For so many times ask_timeout_s after a call, Nova may still be acting on it.
_PATIENCE = 3


def boot_options(options):
    """Return a core.backlog.boot_outcome.Options.

    :param options: [backlog] of the configuration
    """
    return boot_outcome.Options(undecided_s=_PATIENCE * options.ask_timeout_s)


def controller_options(options):
    """Return a core.backlog.backlog_controller.Options, likewise."""
    return backlog_controller.Options(
        dispatch_values.Options(hold_after_s=options.hold_after_s),
        boot_options(options), options.pass_interval_s)


def batch_options(options):
    """Return a core.batch.batch_model.Options, None without batches."""
    if options.batch_mode == OFF:
        return None
    return batch_model.Options(
        mode=options.batch_mode,
        time_limit_s=SOLVER_SHARE * options.pass_interval_s)


def order_options(options, claims=None):
    """Return a core.backlog.queue_order.Options, likewise.

    :param claims: the RequestUptimeReader of classes of service, None without
        classes
    :raises ValueError: a weight is no whole number
    """
    weights = {}
    for name, text in options.priority_weights.items():
        try:
            weights[name] = int(text)
        except ValueError:
            raise ValueError(
                f'[backlog]priority_weights has {text!r} for {name}; it must '
                'be an integer') from None
    return queue_order.Options(weights, options.patience_s, claims)
