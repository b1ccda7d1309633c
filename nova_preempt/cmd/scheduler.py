# SPDX-License-Identifier: Apache-2.0
"""nova-preempt-scheduler: nova-scheduler with a manager that preempts.

Takes the place of nova-scheduler: the same service name in Nova's service
table, the same RPC topic, the same nova.conf and arguments.
"""

# First, since it prepares the process for threads (or, up to 2025.2,
# eventlet) before anything else is imported.
import sys

try:
    from nova.cmd import scheduler  # isort: skip
except Exception as failure:
    # Nova reads the configuration at import, and must be imported first.
    from nova_preempt.cloud import nova_conf
    if not isinstance(failure, nova_conf.BAD):
        raise
    sys.exit(f'nova-preempt-scheduler: {nova_conf.describe(failure)}')

from nova import service
import nova.conf

from nova_preempt import exceptions
from nova_preempt.cloud import nova_conf
from nova_preempt.cmd import startup_option_rules
import nova_preempt.conf
from nova_preempt.conf import option_checks

CONF = nova.conf.CONF

MANAGER = 'nova_preempt.cmd.scheduler_manager.Manager'


def main():
    nova_preempt.conf.register_opts(CONF)
    try:
        nova_conf.read(CONF, sys.argv, configure_db=False, init_rpc=False)
        option_checks.check(CONF, startup_option_rules.SCHEDULER)
        option_checks.LastValidValues(CONF)
    except exceptions.InvalidConfiguration as exc:
        print(f'nova-preempt-scheduler: {exc}', file=sys.stderr)
        return 1
    # Nova reads the configuration again, with command-line options.
    CONF.clear()
    # Nova names its managers in a table; nova-scheduler creates its service
    # by the binary's name, which stays nova-scheduler.
    service.SERVICE_MANAGERS['nova-scheduler'] = MANAGER
    return scheduler.main()


if __name__ == '__main__':
    sys.exit(main())
