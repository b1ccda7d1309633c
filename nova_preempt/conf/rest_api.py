# SPDX-License-Identifier: Apache-2.0

"""[preemption_api]: the REST API, nova-preempt-api."""

from oslo_config import cfg

GROUP = 'preemption_api'

OPTS = [
    cfg.HostAddressOpt(
        'bind_host', default='127.0.0.1',
        help="""
Address on which the command ``nova-preempt-api`` listens. It speaks HTTP
without TLS, so let it be reached through a proxy only. Other WSGI servers
listen where they are told to.
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
        help='How users are told apart. With ``noauth`` the user ``admin`` '
             'may do everything.'),
    cfg.StrOpt(
        'audit_map_file', default='',
        help="""
The map of keystonemiddleware's audit, by which each request to the API is
told to the bus as a CADF event, as ``[audit_middleware_notifications]`` and
``[oslo_messaging_notifications]`` say. One is in
``etc/nova-preempt/preemption_api_audit_map.conf``.

Empty, the default, sends none, as in other services. Changes are in the log
of the API all the same, each with who has asked for it.
"""),
    cfg.IntOpt(
        'rpc_timeout_s', default=30, min=1,
        help="""
How long an answer of the scheduler or of the engine is waited for, in
seconds. It should be less than what the WSGI server or a proxy in front of it
grants to a request.
"""),
]


def register_opts(conf):
    conf.register_opts(OPTS, group=GROUP)
