# SPDX-License-Identifier: Apache-2.0

"""Options of [preemption_api], the REST API."""

from oslo_config import cfg

GROUP = 'preemption_api'

OPTS = [
    cfg.HostAddressOpt(
        'bind_host', default='127.0.0.1',
        help="""
Address on which the command ``nova-preempt-api`` listens. Local by default,
since it has no TLS and needs a proxy. Other WSGI servers ignore it.
"""),
    cfg.PortOpt(
        'bind_port', default=8790,
        help='Port on which the command ``nova-preempt-api`` listens.'),
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
]


def register_opts(conf):
    conf.register_opts(OPTS, group=GROUP)
