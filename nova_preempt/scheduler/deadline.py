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
"""The time until which one request has to be answered."""

import time

from oslo_messaging import opts

from nova_preempt import exceptions
from nova_preempt.core import deadline as core_deadline


class TimeIsUp(Exception):
    """Who asked has given up, or will have before this can be done."""

    def __init__(self, what='go on'):
        super().__init__(f'no time was left to {what}')


def get_messaging_option(conf, name):
    """An option of oslo.messaging in [DEFAULT].

    What it is for registers it: a client or a server, which may come later,
    or never in a command.
    """
    conf.register_opts([opt for _group, found in opts.list_opts()
                        for opt in found if opt.name == name])
    return conf[name]


def make_times(conf):
    """The Times of requests to a scheduler with this configuration.

    :param conf: nova.conf.CONF
    """
    return core_deadline.make_times(
        conf.long_rpc_timeout,
        get_messaging_option(conf, 'rpc_response_timeout'),
        conf.preemption.termination_timeout_s)


def check(conf):
    """Fail where [preemption]maximum_notice_s is too long for the conductor.

    :raises InvalidConfiguration:
    """
    options = conf.preemption
    limit_s = make_times(conf).notice_limit_s
    if options.maximum_notice_s > limit_s:
        raise exceptions.InvalidConfiguration(
            f'[preemption]maximum_notice_s is {options.maximum_notice_s} s; '
            f'with termination_timeout_s {options.termination_timeout_s} s '
            f'and [DEFAULT]long_rpc_timeout {conf.long_rpc_timeout} s no '
            f'notice is longer than {limit_s} s')


class Deadline:
    """One request's, from now on. One object for all that is done for it.

    :param times: nova_preempt.core.deadline.Times
    :param monotonic: the clock
    """

    def __init__(self, times, monotonic=time.monotonic):
        self._monotonic = monotonic
        self._deadline = core_deadline.Deadline(monotonic(), times)

    @property
    def began(self):
        """When the request came: no host was looked at for it before."""
        return self._deadline.began

    def left_s(self):
        """Seconds until the answer must be given, not negative."""
        return max(0.0, self._deadline.left_s(self._monotonic()))

    def is_over(self):
        return self._deadline.is_over(self._monotonic())

    def longest_notice_s(self):
        """The longest notice after which a victim can end in time.

        Negative where nobody can.
        """
        return self._deadline.longest_notice_s(self._monotonic())

    def check(self, what='go on'):
        """Before anything is done that would be in vain too late.

        :raises TimeIsUp: it is too late
        """
        if self.is_over():
            raise TimeIsUp(what)
