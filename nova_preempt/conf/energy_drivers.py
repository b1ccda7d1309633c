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
             'node name, such as ``https://{host}-bmc.example.org``. Empty, '
             'the default, leaves it to ``hosts_file``.'),
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
        help='Where the Bare Metal service is. Empty, the default, looks it '
             'up in the catalog of services, as the user in '
             '``[preemption]``.'),
    cfg.StrOpt(
        'command_on',
        default='',
        help='The command of the driver ``command`` that powers a host on, '
             'with ``{host}`` for the node name; it is run without a shell, '
             'and 0 means done. Empty, the default, leaves it to '
             '``hosts_file``.'),
    cfg.StrOpt(
        'command_off',
        default='',
        help='The command that powers a host off, likewise. It should let '
             'the operating system shut down.'),
    cfg.StrOpt(
        'command_status',
        default='',
        help='The command that tells whether a host is on, likewise: 0 is '
             'on, 1 is off, all else is an error. Empty, the default, takes '
             'the last command that worked for the state.'),
    cfg.IntOpt(
        'command_timeout_s',
        default=60,
        min=1,
        help='How long a command of the drivers ``command`` and ``standby`` '
             'may run, in seconds. Then it is ended, and has failed.'),
    cfg.StrOpt(
        'standby_suspend',
        default='',
        help='The command of the driver ``standby`` that suspends a host, '
             'as ``command_off``, such as '
             '``ssh {host} systemctl suspend``. Empty by default, which that '
             'driver refuses.'),
    cfg.StrOpt(
        'standby_wake',
        default='',
        help='The command that wakes a suspended host, as ``command_on``. '
             'Empty by default, which that driver refuses.'),
    cfg.StrOpt(
        'standby_status',
        default='',
        help='The command that tells whether a host is awake, as '
             '``command_status``.'),
    cfg.IntOpt(
        'power_off_timeout_s',
        default=300,
        min=1,
        help='How long a host may take to shut down before it is switched '
             'off hard, in seconds. It is empty then, so nothing is lost; '
             'five minutes are what slow systems take.'),
]
