# SPDX-License-Identifier: Apache-2.0
"""Options of [preemption_engine]: background tasks of the engine."""

from oslo_config import cfg

GROUP = 'preemption_engine'

OPTS = [
    cfg.IntOpt(
        'interval_s', mutable=True, default=10, min=1,
        help='Seconds between two runs of the background tasks. Short by '
             'default, so that maximum run times are kept within seconds; '
             'each run reads only changes.'),
    cfg.IntOpt(
        'restore_at_once', mutable=True, default=10, min=1,
        help='The most shelved victims that are restored at once, if there '
             'is capacity. It bounds the load of reading their images. A '
             'server that is not restored by its next retry no longer '
             'counts.'),
    cfg.IntOpt(
        'restore_timeout_s', mutable=True, default=7 * 86400, min=1,
        help='Seconds after its eviction during which restoring a shelved '
             'server is retried. A week by default; after that its owner can '
             'still unshelve it.'),
]


def register_opts(conf):
    conf.register_opts(OPTS, group=GROUP)
