# SPDX-License-Identifier: Apache-2.0
"""[preemption_engine]: what the engine does in the background, and when."""

from oslo_config import cfg

GROUP = 'preemption_engine'

OPTS = [
    cfg.IntOpt(
        'interval_s', mutable=True, default=10, min=1,
        help='How often the engine looks for something to do, in seconds. '
             'Short, so that a maximum run time is kept to the second that '
             'matters to people; each look reads only what has changed.'),
    cfg.IntOpt(
        'restore_at_once', mutable=True, default=10, min=1,
        help='How many shelved servers may be on their way back at once, as '
             'far as there is room for them. What this bounds is the load of '
             'their images. One that takes longer than until its next try '
             'does not count any more.'),
    cfg.IntOpt(
        'restore_timeout_s', mutable=True, default=7 * 86400, min=1,
        help='How long after its end a shelved server is tried to be '
             'restored, in seconds. After a week it is left to its owner, '
             'who can still unshelve it.'),
]


def register_opts(conf):
    conf.register_opts(OPTS, group=GROUP)
