# SPDX-License-Identifier: Apache-2.0
"""The driver "redfish": powers hosts by their controllers."""

import contextlib
import threading

import requests
import sushy
from sushy import auth as sushy_auth
from sushy import connector as sushy_connector

from nova_preempt.core.energy import power_steps
from nova_preempt.power import driver
from nova_preempt.power import hosts_file as power_hosts
from nova_preempt.power import power_errors

#: Timeout of the driver's calls of a controller: controllers are slow.
TIMEOUT_S = 30

_BOOLEANS = {'true': True, 'false': False}


class _NoAuth(sushy_auth.AuthBase):
    """Authentication for a controller without credentials."""

    def _do_authenticate(self):
        """Do nothing."""

    def can_refresh_session(self):
        return False


class Controllers:
    """Keeps a session with each controller until a call fails.

    Controllers allow few sessions and log each new one.

    :param options: [energy] of the configuration
    :param timeout_s: of each call of a controller
    """

    def __init__(self, options, timeout_s):
        self._options = options
        self._hosts = power_hosts.HostsFile(options.hosts_file)
        self._timeout_s = timeout_s
        self._lock = threading.Lock()
        self._sessions = {}

    def knows(self, host):
        """Return whether the host has a controller."""
        return bool(self._settings(host)['address'])

    @contextlib.contextmanager
    def system(self, host):
        """Yield a sushy System, read now, and a function from path to JSON.

        :raises PowerError: the controller did not answer, or with an error;
            errors of sushy within the context, too
        """
        try:
            yield self._open(host)
        except (sushy.exceptions.SushyError, power_errors.HostsFileError,
                requests.RequestException, ValueError, KeyError, TypeError,
                AttributeError) as exc:
            # NOTE: it may have restarted, and lost its sessions.
            with self._lock:
                self._sessions.pop(host, None)
            raise power_errors.PowerError(host, _describe(exc)) from exc

    def _open(self, host):
        settings = self._settings(host)
        if not settings['address']:
            raise power_errors.HostsFileError(
                'neither [energy]redfish_address nor [energy]hosts_file sets '
                'the address of its Redfish service')
        with self._lock:
            session = self._sessions.get(host)
        if session is None:
            session = self._connect(settings)
            with self._lock:
                self._sessions[host] = session
        root, connector = session

        def fetch(path):
            try:
                return connector.get(path).json()
            except sushy.exceptions.ResourceNotFoundError:
                return None

        return root.get_system(settings['system'] or None), fetch

    def _connect(self, settings):
        connector = sushy_connector.Connector(
            settings['address'], verify=settings['verify'],
            # One retry without delay: the caller retries later.
            server_side_retries=1, server_side_retries_delay=0,
            default_request_timeout=self._timeout_s)
        if settings['username']:
            auth = sushy_auth.SessionOrBasicAuth(
                settings['username'], settings['password'])
        else:
            auth = _NoAuth()
        return sushy.Sushy(settings['address'], auth=auth,
                           connector=connector), connector

    def _settings(self, host):
        options = self._options
        verify = options.redfish_verify
        return {
            'address': power_hosts.expand(options.redfish_address, host),
            'username': options.redfish_username,
            'password': options.redfish_password,
            'system': power_hosts.expand(options.redfish_system, host),
            'verify': _BOOLEANS.get(verify.lower(), verify),
            **self._hosts.section(host, 'redfish')}


class Redfish(driver.Driver):
    """Power driver; see nova_preempt.power.driver.Driver."""

    SHUT_DOWN = sushy.ResetType.GRACEFUL_SHUTDOWN
    SWITCH_OFF = sushy.ResetType.FORCE_OFF

    def __init__(self, conf, waiter=None):
        super().__init__(conf, waiter)
        self._controllers = Controllers(self._options, TIMEOUT_S)

    def is_on(self, host):
        return self._state(host) != sushy.PowerState.OFF

    def power_on(self, host):
        # NOTE: a host that is powering off would ignore a power on.
        if self._state(host) in (sushy.PowerState.ON,
                                 sushy.PowerState.POWERING_ON):
            return
        timeout_s = power_steps.POWER_SWITCH_TIMEOUT_S
        self._waiter.wait(
            host, lambda: self._state(host) != sushy.PowerState.POWERING_OFF,
            timeout_s, 'powered off')
        self._ask(host, sushy.ResetType.ON)
        self._waiter.wait(
            host, lambda: self._state(host) == sushy.PowerState.ON,
            timeout_s, 'powered on')

    def _state(self, host):
        with self._controllers.system(host) as (system, _fetch):
            if system.power_state is None:
                raise ValueError('the system reports no PowerState')
            return system.power_state

    def _ask(self, host, how):
        with self._controllers.system(host) as (system, _fetch):
            system.reset_system(how)


def _describe(exc):
    if isinstance(exc, (power_errors.HostsFileError, requests.RequestException,
                        sushy.exceptions.SushyError)):
        return exc
    return f'Redfish gave an unexpected answer: {exc!r}'
