# SPDX-License-Identifier: Apache-2.0

"""Configuration options of nova_preempt, one module a group.

They live in nova.conf beside Nova's own: the scheduler reads one file.
"""

import contextlib

from oslo_config import cfg

from nova_preempt.conf import backlog
from nova_preempt.conf import benchmark_credentials
from nova_preempt.conf import classes
from nova_preempt.conf import database
from nova_preempt.conf import energy
from nova_preempt.conf import engine_tasks
from nova_preempt.conf import preemption
from nova_preempt.conf import quota
from nova_preempt.conf import reservation
from nova_preempt.conf import reservation_blazar
from nova_preempt.conf import rest_api
from nova_preempt.conf import weights


def register_opts(conf):
    """Register every option on conf; calling it again changes nothing."""
    energy.register_opts(conf)
    _register_others(conf)


def register_api_opts(conf):
    """Register what a process that serves users has to know.

    Not the credentials of what has power over hosts: whoever breaks into it
    must not find the passwords of their controllers.
    """
    energy.register_api_opts(conf)
    _register_others(conf)


def _register_others(conf):
    for module in (rest_api, backlog, benchmark_credentials, classes, database,
                   engine_tasks,
                   preemption, quota, reservation, reservation_blazar,
                   weights):
        module.register_opts(conf)
    # Nova's own groups, where this process has them: keystoneauth waits for a
    # silent server without end by default.
    for group in ('placement', 'cyborg'):
        with contextlib.suppress(cfg.NoSuchOptError, cfg.NoSuchGroupError):
            conf.set_default('timeout', preemption.TIMEOUT_S, group=group)
