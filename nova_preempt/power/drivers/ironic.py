# SPDX-License-Identifier: Apache-2.0
"""The driver "ironic": powers the hosts' nodes in Ironic."""

from nova_preempt import url_segments
from nova_preempt.core.energy import power_steps
from nova_preempt.power import driver
from nova_preempt.power import power_errors
from nova_preempt.power import rest_client

# Soft power off with a timeout.
VERSION = '1.27'

# The node is locked, or all conductors are busy.
_BUSY = (409, 503)


class Ironic(driver.Driver):
    """Power driver; see nova_preempt.power.driver.Driver.

    The node of a host is named by hosts_file, or else has its name, or else
    was deployed as a server of its name.
    """

    SHUT_DOWN = 'soft power off'
    SWITCH_OFF = 'power off'

    def __init__(self, conf, waiter=None):
        super().__init__(conf, waiter)
        self._client = rest_client.make_adapter(
            conf, self._options.ironic_url, 'baremetal',
            default_microversion=VERSION)
        self._nodes = {}

    def is_on(self, host):
        states = self._states(host)
        if states.get('power_state') in ('power on', 'power off'):
            return states['power_state'] == 'power on'
        raise power_errors.PowerError(
            host, 'Ironic reports neither "power on" nor "power off", but '
            f'{states.get("power_state")!r}: {states.get("last_error")}')

    def power_on(self, host):
        if self._is_settled(host, 'power on'):
            return
        timeout_s = power_steps.POWER_SWITCH_TIMEOUT_S
        self._request(host, 'power on', timeout_s)
        self._waiter.wait(
            host, lambda: self._is_settled(host, 'power on', asked=True),
            timeout_s, 'powered on')

    def _power_off(self, host, how, timeout_s, what):
        asked = []

        def ask():
            self._request(host, how, timeout_s)
            asked.append(how)

        self._waiter.switch(
            host, lambda: self._is_settled(host, 'power off', bool(asked)),
            ask, timeout_s, what)

    def _is_settled(self, host, wanted, asked=False):
        """Return whether the state is reached, and no change is running.

        :raises Refused: the change was requested, and Ironic has given up
        """
        states = self._states(host)
        if states.get('target_power_state'):
            return False
        if states.get('power_state') == wanted:
            return True
        if asked and states.get('last_error'):
            raise driver.Refused(host, states['last_error'])
        return False

    def _request(self, host, target, timeout_s):
        """Request a state as soon as the node is free."""
        body = {'target': target}
        if target != 'power on':
            body['timeout'] = timeout_s

        def is_accepted():
            try:
                self._call(host, 'PUT', '/states/power', json=body)
            except rest_client.RestError as exc:
                if exc.status in _BUSY:
                    raise power_errors.PowerError(host, exc) from exc
                raise driver.Refused(host, exc) from exc
            return True

        self._waiter.wait(host, is_accepted, timeout_s, 'unlocked')

    def _states(self, host):
        try:
            return self._call(host, 'GET', '/states')
        except rest_client.RestError as exc:
            raise power_errors.PowerError(host, exc) from exc

    def _call(self, host, method, path, **options):
        """Return Ironic's answer, a dict, None if it is empty.

        :raises rest_client.RestError: no answer, or an error
        :raises PowerError: the answer is invalid, or the node does not exist
        """
        try:
            if host not in self._nodes:
                self._nodes[host] = self._find(host)['uuid']
            answer = rest_client.call(
                self._client, method,
                f'/v1/nodes/{self._nodes[host]}{path}', **options)
            return None if answer is None else dict(answer)
        except rest_client.RestError as exc:
            if exc.status == 404:
                # NOTE: the node may have been enrolled anew.
                self._nodes.pop(host, None)
            raise
        except (AttributeError, KeyError, TypeError, ValueError) as exc:
            raise power_errors.PowerError(
                host, f'Ironic gave an unexpected answer: {exc!r}') from exc

    def _find(self, host):
        """Return the node of a host, as Ironic shows it."""
        name = self._hosts.section(host, 'ironic').get('node', host)
        try:
            return rest_client.call(self._client, 'GET', '/v1/nodes/'
                                    + url_segments.segment(
                                        name, url_segments.DETAIL))
        except url_segments.NotASegment as exc:
            raise power_errors.PowerError(host, f'Ironic node: {exc}') from exc
        except rest_client.RestError as exc:
            # 400: not a valid name of a node.
            if exc.status not in (400, 404):
                raise
        nodes = rest_client.call(
            self._client, 'GET', '/v1/nodes',
            params={'fields': 'uuid,instance_info', 'associated': 'true'})
        found = [node for node in nodes['nodes'] if name ==
                 (node.get('instance_info') or {}).get('display_name')]
        if len(found) != 1:
            raise power_errors.PowerError(
                host, f'Ironic has no node named {name}, and {len(found)} '
                'nodes with a server of that name instead of 1')
        return found[0]
