# SPDX-License-Identifier: Apache-2.0

"""Configuration options of nova_preempt, one module per group.

They are read from nova.conf, with Nova's own options.
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
from nova_preempt.conf import preemption_quota
from nova_preempt.conf import reservation
from nova_preempt.conf import reservation_blazar
from nova_preempt.conf import rest_api
from nova_preempt.conf import weigher_multipliers


def register_opts(conf):
    """Register all options on conf; idempotent."""
    energy.register_opts(conf)
    _register_others(conf)


def register_api_opts(conf):
    """Register the options of the API.

    Credentials of host controllers are left out: an intruder into the API
    must not find them.
    """
    energy.register_api_opts(conf)
    _register_others(conf)


def _register_others(conf):
    for module in (rest_api, backlog, benchmark_credentials, classes, database,
                   engine_tasks, preemption, preemption_quota, reservation,
                   reservation_blazar, weigher_multipliers):
        module.register_opts(conf)
    # Nova's groups, if this process has them: by default keystoneauth waits
    # for a silent server for ever.
    for group in ('placement', 'cyborg'):
        with contextlib.suppress(cfg.NoSuchOptError, cfg.NoSuchGroupError):
            conf.set_default('timeout', preemption.TIMEOUT_S, group=group)
