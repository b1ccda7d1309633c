# SPDX-License-Identifier: Apache-2.0
"""Client of Nova's API with the service user, for evictions."""

import contextlib
import datetime
import functools
import json

from keystoneauth1 import exceptions as ks_exc
from keystoneauth1 import loading as ks_loading
from novaclient import client as nova_client
from novaclient import exceptions as nova_exc
from oslo_config import cfg
from oslo_log import log as logging

from nova_preempt import exceptions
from nova_preempt.conf import preemption
from nova_preempt.core import observed_server
from nova_preempt.core.eviction import closing_rules

LOG = logging.getLogger(__name__)

# The version of a lock with a reason, newer than all else that is used.
VERSION = '2.73'

# The metadata key of the notice that the guest reads.
NOTICE_KEY = 'preemption'


class NovaError(Exception):
    """Nova's API cannot be reached, or refuses a call."""


class NoAnswer(NovaError):
    """Nova does not answer, or a proxy of it fails."""


class NotAllowed(NovaError):
    """Nova's policy does not permit the service user's call."""


def _time(text):
    """Parse a time of Nova's API as a naive datetime in UTC."""
    return text and datetime.datetime.fromisoformat(text).replace(tzinfo=None)


@contextlib.contextmanager
def _errors(what):
    """Raise NovaError when novaclient or keystoneauth fails."""
    try:
        yield
    except nova_exc.Forbidden as exc:
        raise NotAllowed(f'{what}: {exc}') from exc
    except nova_exc.ClientException as exc:
        # 500 may concern one server; these codes are those of a proxy.
        away = exc.code in (502, 503, 504)
        raise (NoAnswer if away else NovaError)(f'{what}: {exc}') from exc
    except ks_exc.ClientException as exc:
        raise NoAnswer(f'{what}: {exc}') from exc


def load_auth(conf):
    """Load the auth plugin of the credentials in [preemption]."""
    return ks_loading.load_auth_from_conf_options(conf, preemption.GROUP)


def load_session(conf):
    """Load a keystoneauth1 Session with these credentials."""
    return ks_loading.load_session_from_conf_options(
        conf, preemption.GROUP, auth=load_auth(conf))


def check(conf):
    """Validate the credentials for Nova.

    :raises InvalidConfiguration: they are missing or incomplete
    """
    if not NovaAPI.is_configured(conf):
        raise exceptions.InvalidConfiguration(
            '[preemption]auth_type is not set; evictions need credentials '
            'for Nova')
    try:
        load_auth(conf)
    except (ks_exc.ClientException, cfg.Error) as exc:
        raise exceptions.InvalidConfiguration(
            f'[preemption]auth_type is {conf[preemption.GROUP].auth_type}: '
            f'{exc}') from None


class NovaAPI:
    """Client of Nova's API, for servers of any user.

    Uses the credentials in [preemption], whose user must have an admin role.
    Methods raise NovaError if Nova does not accept the call.
    """

    def __init__(self, conf):
        #: Given a server's uuid, returns whether its cell hangs: Nova's API
        #: waits a minute for that cell each time.
        self.is_away = lambda uuid: False
        self._conf = conf
        self._client = None

    @staticmethod
    def is_configured(conf):
        """Return whether there are any credentials."""
        group = conf[preemption.GROUP]
        return bool(group.auth_type or group.auth_section)

    def _get_client(self):
        if self._client is None:
            group = self._conf[preemption.GROUP]
            self._client = nova_client.Client(
                VERSION, session=load_session(self._conf),
                service_type=group.service_type, region_name=group.region_name,
                endpoint_type=(group.valid_interfaces or ['internal'])[0],
                endpoint_override=group.endpoint_override)
        return self._client

    def check_cell(self, method, uuid):
        """Raise NovaError while the cell of a server does not answer."""
        if self.is_away(uuid):
            raise NovaError(
                f'{method} server {uuid}: its cell does not answer')

    def _call(self, method, uuid, *args, kind='servers', **kwargs):
        self.check_cell(method, uuid)
        with _errors(f'{method} server {uuid}'):
            try:
                return getattr(getattr(self._get_client(), kind), method)(
                    uuid, *args, **kwargs)
            except nova_exc.NotFound:
                return None

    def get(self, uuid):
        """Return the ObservedServer, None if it is gone.

        :raises NovaError: it cannot be read
        """
        server = self._call('get', uuid)
        if server is None or server.status == 'DELETED':
            return None
        if server.status == 'UNKNOWN':
            raise NovaError(f'get server {uuid}: its cell is down')
        return observed_server.ObservedServer(
            uuid, getattr(server, 'OS-EXT-STS:vm_state', ''),
            getattr(server, 'OS-EXT-STS:task_state', None),
            getattr(server, 'OS-EXT-SRV-ATTR:host', None),
            launched_at=_time(getattr(server, 'OS-SRV-USG:launched_at', None)),
            locked_by=self._locked_by(server), status=server.status,
            locked_reason=getattr(server, 'locked_reason', None))

    def _locked_by(self, server):
        """Return 'owner', 'admin' or '', by the server's actions.

        As in Nova, the owner is any user of the server's project.
        """
        if not getattr(server, 'locked', False):
            return ''
        # An owner's lock of an already locked server changes nothing and is
        # not recorded.
        projects = [item.project_id for item in self._actions(server.id) or ()
                    if item.action == 'lock']
        return 'owner' if projects[:1] == [server.tenant_id] else 'admin'

    # The latest comes first.
    _actions = functools.partialmethod(_call, 'list', kind='instance_action')

    def is_left_off(self, server):
        """Return whether a failed shelve has left a server switched off.

        See closing_rules.is_left_off().
        """
        return closing_rules.is_left_off(server.vm_state, [
            (item.action, item.message, item.project_id)
            for item in self._actions(server.uuid) or ()])

    def set_notice(self, uuid, action, last_resort, deadline, reason,
                   decision_uuid):
        """Write the notice of an eviction into the server's metadata.

        :param last_resort: the action if the first one fails
        :param deadline: a naive datetime in UTC
        """
        notice = {'action': action,
                  'deadline': f'{deadline:%Y-%m-%dT%H:%M:%SZ}',
                  'reason': reason, 'preemption_id': decision_uuid}
        if last_resort != action:
            notice['otherwise'] = last_resort
        self.set_meta(uuid, {NOTICE_KEY: json.dumps(notice)})

    def clear_notice(self, uuid, decision_uuid=''):
        """Delete the notice from the server's metadata, if there is any.

        :param decision_uuid: if given, delete only the notice of this decision
        :returns: False if Nova refuses it in the present state of the server;
            True, too, if its policy forbids it, as to try again is no use
        :raises NoAnswer: to be tried again
        """
        try:
            server = self._call('get', uuid) if decision_uuid else None
            if server is None or (
                    decision_uuid in server.metadata.get(NOTICE_KEY, '')):
                self.delete_meta(uuid, [NOTICE_KEY])
        except NoAnswer:
            raise
        except NovaError as exc:
            LOG.warning('The notice of server %s stays: %s', uuid, exc)
            return isinstance(exc, NotAllowed)
        return True

    set_meta = functools.partialmethod(_call, 'set_meta')
    delete_meta = functools.partialmethod(_call, 'delete_meta')
    # Deletes even if [DEFAULT]reclaim_instance_interval is set: a soft-deleted
    # server would keep its allocation.
    force_delete = functools.partialmethod(_call, 'force_delete')
    delete = functools.partialmethod(_call, 'delete')
    shelve = functools.partialmethod(_call, 'shelve')
    shelve_offload = functools.partialmethod(_call, 'shelve_offload')
    unshelve = functools.partialmethod(_call, 'unshelve')
    stop = functools.partialmethod(_call, 'stop')
    start = functools.partialmethod(_call, 'start')
    hard_reboot = functools.partialmethod(_call, 'reboot', reboot_type='HARD')
    unpause = functools.partialmethod(_call, 'unpause')
    resume = functools.partialmethod(_call, 'resume')
    unrescue = functools.partialmethod(_call, 'unrescue')
    unlock = functools.partialmethod(_call, 'unlock')
    confirm_resize = functools.partialmethod(_call, 'confirm_resize')
    lock = functools.partialmethod(_call, 'lock')

    def live_migrate(self, uuid):
        """Live-migrate a server to a host that the scheduler selects."""
        self._call('live_migrate', uuid, host=None, block_migration='auto')

    def disable_service(self, uuid, reason):
        """Disable a compute service, so that its host gets no new servers."""
        self._update_service('disable_log_reason', uuid, reason)

    def _update_service(self, method, uuid, *args):
        with _errors(f'{method} service {uuid}'):
            getattr(self._get_client().services, method)(uuid, *args)

    enable_service = functools.partialmethod(_update_service, 'enable')

    def abort_migration(self, uuid):
        """Abort the live migrations of a server."""
        call = functools.partial(self._call, kind='server_migrations')
        for migration in call('list', uuid) or ():
            call('live_migration_abort', uuid, migration.id)

    # Of a stopped server; confirm_resize() frees its old host.
    cold_migrate = functools.partialmethod(_call, 'migrate')

    # -- hosts, as dicts of Nova's API -----------------------------------

    def list_hypervisors(self):
        """Return all hypervisors with their details.

        :raises NovaError: they cannot be listed
        """
        found, marker = [], None
        while page := self._list('hypervisors', detailed=True, marker=marker):
            found += page
            marker = page[-1]['id']
        return found

    def _list(self, what, **kwargs):
        with _errors(f'list {what}'):
            manager = getattr(self._get_client(), what)
            return [item.to_dict() for item in manager.list(**kwargs)]

    list_compute_services = functools.partialmethod(
        _list, 'services', binary='nova-compute')
    list_aggregates = functools.partialmethod(_list, 'aggregates')
