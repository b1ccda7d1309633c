# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.
"""[energy]: how hosts are powered off and on."""

from oslo_config import cfg

OPTS = [
    cfg.StrOpt(
        'driver',
        default='redfish',
        help="""
How hosts are powered off and on: the name of an entry point in the group
``nova_preempt.power_driver``; ``hosts_file`` may name another for a host.

* ``redfish``: the host's own controller, by Redfish;
* ``ironic``: through the Bare Metal service that knows the host as a node;
* ``command``: commands of yours, for IPMI, wake-on-LAN and all else;
* ``standby``: commands that suspend a host and wake it, where its hardware
  can: it is back in seconds.
"""),
    cfg.StrOpt(
        'redfish_address',
        default='',
        help='The address of a host\'s controller, with ``{host}`` for the '
             'node name and ``{short}`` for its part before the first dot, '
             'such as ``https://{short}-bmc.example.org``. Empty, the '
             'default, leaves it to ``hosts_file``.'),
    cfg.StrOpt(
        'redfish_username',
        default='',
        help='The user at the controllers, where ``hosts_file`` names none. '
             'Empty, the default, sends no credentials.'),
    cfg.StrOpt(
        'redfish_password',
        default='',
        secret=True,
        help='Its password. Empty by default.'),
    cfg.StrOpt(
        'redfish_system',
        default='',
        help='The path of the system at the controller, such as '
             '``/redfish/v1/Systems/1``. Empty, the default, takes the only '
             'one there is.'),
    cfg.StrOpt(
        'redfish_verify',
        default='true',
        help='Whether the certificates of controllers are verified: '
             '``true``, ``false``, or a file of the authorities to trust. '
             'True by default: their passwords open every host.'),
    cfg.IntOpt(
        'redfish_timeout_s',
        default=30,
        min=1,
        help='How long the answer of a controller is waited for, in seconds. '
             'Controllers are slow.'),
    cfg.StrOpt(
        'ironic_url',
        default='',
        secret=True,
        help='Where the Bare Metal service is. Empty, the default, looks it '
             'up in the catalog of services, as the user in '
             '``[preemption]``.'),
    cfg.StrOpt(
        'command_on',
        default='',
        secret=True,
        help='The command of the driver ``command`` that powers a host on, '
             'with ``{host}`` for the node name and ``{short}`` for its part '
             'before the first dot; it is run without a shell, and 0 means '
             'done. Empty, the default, leaves it to '
             '``hosts_file``.'),
    cfg.StrOpt(
        'command_off',
        default='',
        secret=True,
        help='The command that lets a host shut down and power off, '
             'likewise.'),
    cfg.StrOpt(
        'command_force_off',
        default='',
        secret=True,
        help='The command that switches a host off hard, likewise, where '
             '``command_off`` did not within ``power_off_timeout_s``. Empty, '
             'the default, leaves it to ``hosts_file``; without one a host '
             'that does not shut down stays on and is reported.'),
    cfg.StrOpt(
        'command_status',
        default='',
        secret=True,
        help='The command that tells whether a host is on, likewise: 0 is '
             'on, 1 is off, all else is an error. Empty, the default, leaves '
             'it to ``hosts_file``: the driver needs one.'),
    cfg.StrOpt(
        'command_on_pattern',
        default='',
        help='A regular expression that is found in what '
             '``command_status`` prints if the host is on, such as ``is on`` '
             'for ``ipmitool chassis power status``. Empty, the default, '
             'goes by the exit status.'),
    cfg.IntOpt(
        'command_timeout_s',
        default=60,
        min=1,
        help='How long a command of the drivers ``command`` and ``standby`` '
             'may run, in seconds. Then it is ended, and has failed.'),
    cfg.StrOpt(
        'standby_suspend',
        default='',
        secret=True,
        help='The command of the driver ``standby`` that suspends a host, '
             'as ``command_off``, such as '
             '``ssh {host} systemctl suspend``. Empty, the default, leaves '
             'it to ``hosts_file``: the driver needs one.'),
    cfg.StrOpt(
        'standby_wake',
        default='',
        secret=True,
        help='The command that wakes a suspended host, as ``command_on``. '
             'Empty, the default, is for hosts with a MAC address in '
             '``hosts_file``: these are sent a magic packet.'),
    cfg.StrOpt(
        'standby_status',
        default='',
        secret=True,
        help='The command that tells whether a host is awake, as '
             '``command_status``, such as ``ping -c 1 -W 1 {host}``. Empty, '
             'the default, leaves it to ``hosts_file``: the driver needs '
             'one.'),
    cfg.StrOpt(
        'standby_broadcast',
        default='255.255.255.255',
        help='The address that magic packets are sent to, where '
             '``hosts_file`` names none. The default reaches the network '
             'that the engine is in; hosts elsewhere need the broadcast '
             'address of theirs, and a router that lets it through.'),
    cfg.IntOpt(
        'power_off_timeout_s',
        default=300,
        min=1,
        help='How long a host may take to shut down before it is switched '
             'off hard, in seconds. It is empty then, so nothing is lost; '
             'five minutes are what slow systems take.'),
    cfg.IntOpt(
        'power_switch_timeout_s',
        default=60,
        min=1,
        help='How long it may take, in seconds, until a host that was '
             'switched on, or off hard, or suspended, is seen to be so; the '
             'boot is not part of it. A minute, since controllers show it '
             'late.'),
]
