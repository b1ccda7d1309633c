# SPDX-License-Identifier: Apache-2.0
"""nova-preempt-webhook: sends notifications to the webhooks of projects.

Reads the same nova.conf as the engine. Several may run. If the operator
allows no webhooks, it connects to nothing and waits for a signal.
"""

# Before all other imports.
from nova_preempt.cmd import native_threads  # noqa: F401 isort: skip

import signal
import sys
import threading

import nova.conf
from oslo_log import log as logging
import oslo_messaging as messaging

from nova_preempt import db
from nova_preempt import exceptions
from nova_preempt import metrics
from nova_preempt.backlog import secret_encryption
from nova_preempt.cloud import nova_conf
import nova_preempt.conf
from nova_preempt.conf import option_checks
from nova_preempt.db import connection
from nova_preempt.db import schema_upgrade
from nova_preempt.webhook import notification_listener
from nova_preempt.webhook import sender
from nova_preempt.webhook import target_check

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)


def check(conf):
    """Check what the service needs, if the operator allows webhooks.

    :raises InvalidConfiguration:
    """
    if target_check.load_rules(conf).ports:
        secret_encryption.SecretCipher(conf.backlog).keys()
        schema_upgrade.check(db.Database(conf))


def run(conf, stopped):
    """Store and send events until a threading.Event is set."""
    sending = sender.Sender(conf, database := db.Database(conf))
    listener = notification_listener.make_listener(
        conf, messaging.get_notification_transport(conf),
        notification_listener.Endpoint(database, sending.wake.set))
    listener.start(override_pool_size=notification_listener.THREADS)
    LOG.info('nova-preempt-webhook %s has started.', conf.host)
    sending.run(stopped)
    listener.stop()
    listener.wait()


def main():
    nova_preempt.conf.register_api_opts(CONF)
    try:
        nova_conf.read(CONF, sys.argv, configure_db=False, init_rpc=False)
        option_checks.check(CONF, (connection.check_url, check))
    except exceptions.InvalidConfiguration as exc:
        print(f'nova-preempt-webhook: {exc}', file=sys.stderr)
        return 1
    logging.setup(CONF, 'nova')
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_args: stopped.set())
    metrics.serve(CONF.preemption.metrics_port,
                  CONF.preemption.metrics_address)
    if target_check.load_rules(CONF).ports:
        run(CONF, stopped)
    else:
        # If it ended, its supervisor would start it again and again.
        LOG.info('%s allows no port; no webhook is called.',
                 target_check.OPTION)
        stopped.wait()
    return 0


if __name__ == '__main__':
    sys.exit(main())
