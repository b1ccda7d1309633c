# SPDX-License-Identifier: Apache-2.0

"""Options of [preemption_api], the REST API."""

from oslo_config import cfg

GROUP = 'preemption_api'

OPTS = [
    cfg.PortOpt(
        'bind_port', default=8790,
        help='Port of 127.0.0.1 on which the command ``nova-preempt-api`` '
             'listens. It has no TLS; other WSGI servers ignore it.'),
    cfg.StrOpt(
        'auth_strategy', default='keystone',
        choices=[
            ('keystone', 'tokens are checked as [keystone_authtoken] says'),
            ('noauth', 'for tests: a token is "user:project", taken on trust'),
        ],
        help='How users are authenticated. With ``noauth`` the user '
             '``admin`` is an administrator.'),
    cfg.StrOpt(
        'audit_map_file', default='',
        help="""
The audit map of keystonemiddleware, which sends each API request as a CADF
event to the bus, as ``[audit_middleware_notifications]`` and
``[oslo_messaging_notifications]`` configure. The map
``etc/nova-preempt/preemption_api_audit_map.conf`` may be used.

Empty, the default, sends no events, as in other services. The log of the API
has each change and the user who requested it in any case.
"""),
    cfg.IntOpt(
        'rpc_timeout_s', default=30, min=1,
        help="""
Seconds to wait for responses of the scheduler and the engine. It should be
less than the request timeout of the WSGI server and its proxy; half a minute,
the default, is below the common timeout of a minute.
"""),
    cfg.ListOpt(
        'webhook_targets', default=[],
        help="""
Where the webhooks of projects may be: ``https:443`` allows a scheme and port,
``-192.0.2.0/24`` refuses a network, ``+10.1.0.0/16`` allows one that is not
public; others that are not public are refused. List the cloud's public
networks with ``-``. Empty, the default, allows no webhooks, since they make
``nova-preempt-webhook`` call addresses that users choose. Set the same value
for both services.
"""),
]


def register_opts(conf):
    conf.register_opts(OPTS, group=GROUP)
