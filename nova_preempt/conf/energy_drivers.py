# SPDX-License-Identifier: Apache-2.0
"""[energy]: how hosts are powered off and on."""

from oslo_config import cfg

OPTS = [
    cfg.StrOpt(
        'driver', default='redfish',
        help="""
How hosts are powered off and on: the name of an entry point in the group
``nova_preempt.power_driver``; ``hosts_file`` may name another for a host.

* ``redfish``: the host's own controller, by Redfish;
* ``ironic``: through the Bare Metal service that knows the host as a node;
* ``command``: commands of yours, for IPMI, wake-on-LAN, hosts that are
  suspended, and all else.
"""),
    cfg.StrOpt(
        'redfish_address', default='',
        help='The address of a host\'s controller, with ``{host}`` for the '
             'node name and ``{short}`` for its part before the first dot, '
             'such as ``https://{short}-bmc.example.org``. Empty, the '
             'default, leaves it to ``hosts_file``.'),
    cfg.StrOpt(
        'redfish_username', default='',
        help='The user at the controllers, where ``hosts_file`` names none. '
             'Empty, the default, sends no credentials.'),
    cfg.StrOpt(
        'redfish_password', default='', secret=True,
        help='Its password. Empty by default.'),
    cfg.StrOpt(
        'redfish_system', default='',
        help='The path of the system at the controller, such as '
             '``/redfish/v1/Systems/1``. Empty, the default, takes the only '
             'one there is.'),
    cfg.StrOpt(
        'redfish_verify', default='true',
        help='Whether the certificates of controllers are verified: '
             '``true``, ``false``, or a file of the authorities to trust. '
             'True by default: their passwords open every host.'),
    cfg.StrOpt(
        'ironic_url', default='', secret=True,
        help='Where the Bare Metal service is. Empty, the default, looks it '
             'up in the catalog of services, as the user in '
             '``[preemption]``.'),
    cfg.StrOpt(
        'command_on', default='', secret=True,
        help='The command of the driver ``command`` that powers a host on, '
             'with ``{host}`` for the node name and ``{short}`` for its part '
             'before the first dot; it is run without a shell, and 0 means '
             'done. Empty, the default, leaves it to ``hosts_file``, where a '
             'host may have a MAC address instead.'),
    cfg.StrOpt(
        'command_off', default='', secret=True,
        help='The command that lets a host shut down and power off, '
             'likewise, or suspends it, such as '
             '``ssh {host} systemctl suspend``.'),
    cfg.StrOpt(
        'command_force_off', default='', secret=True,
        help='The command that switches a host off hard, likewise, where '
             '``command_off`` did not within five minutes. Empty, '
             'the default, leaves it to ``hosts_file``; without one a host '
             'that does not shut down stays on and is reported.'),
    cfg.StrOpt(
        'command_status', default='', secret=True,
        help='The command that tells whether a host is on, likewise: 0 is '
             'on, 1 is off, all else is an error. Empty, the default, leaves '
             'it to ``hosts_file``: the driver needs one.'),
    cfg.StrOpt(
        'command_on_pattern', default='',
        help='A regular expression that is found in what '
             '``command_status`` prints if the host is on, such as ``is on`` '
             'for ``ipmitool chassis power status``. Empty, the default, '
             'goes by the exit status.'),
]
