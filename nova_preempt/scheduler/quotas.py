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
"""The two quotas: what a project may have of each kind of server.

Nova's API checks its own quota before it asks the scheduler and knows nothing
of kinds. Here each kind is bounded by limits of its own.
"""

import contextlib

from nova import exception
from oslo_concurrency import lockutils
from oslo_limit import exception as limit_exc
from oslo_limit import limit
from oslo_log import log as logging

from nova_preempt.scheduler import usage

LOG = logging.getLogger(__name__)

NAMES = ('servers', 'vcpus', 'memory_mb')


class OptionLimits:
    """Limits by the options of [preemption_quota].

    :raises InvalidConfiguration: a line of project_limits is not understood
    """

    def __init__(self, options):
        self._defaults = {}
        for name in NAMES:
            for prefix in ('', 'normal_'):
                self._defaults[prefix + name] = options[prefix + name]
        self._projects = dict(self._parse(line)
                              for line in options.project_limits or ())

    def _parse(self, line):
        values = dict(line)
        try:
            project_id = values.pop('project_id')
            limits = {name: int(value) for name, value in values.items()}
        except (KeyError, ValueError):
            limits = None
        if limits is None or not limits.keys() <= self._defaults.keys():
            raise exception.InvalidConfiguration(
                f'[preemption_quota]project_limits has {line!r}; it takes '
                'project_id and whole numbers for '
                + ', '.join(self._defaults))
        return project_id, limits

    def _of(self, project_id, preemptible):
        limits = {**self._defaults, **self._projects.get(project_id, {})}
        prefix = '' if preemptible else 'normal_'
        return {name: limits[prefix + name] for name in NAMES}

    def is_bounded(self, project_id, preemptible):
        """Whether there is any limit: if not, nothing is counted."""
        return any(value >= 0 for value in
                   self._of(project_id, preemptible).values())

    def over(self, project_id, preemptible, used, requested):
        """[(name, limit, used, requested)] of the limits that are exceeded.

        :param used: {name: amount} before the request
        :param requested: {name: amount}, of what it adds
        """
        limits = self._of(project_id, preemptible)
        return [(name, limits[name], used[name], amount)
                for name, amount in requested.items()
                if 0 <= limits[name] < used[name] + amount]


class KeystoneLimits:
    """Registered limits and limits of projects in Keystone, by oslo.limit."""

    def is_bounded(self, project_id, preemptible):
        return True

    def over(self, project_id, preemptible, used, requested):
        """See OptionLimits."""
        prefix = 'preemptible_' if preemptible else 'normal_'

        def usages(project_id, names):
            return {name: used[name.removeprefix(prefix)] for name in names}

        try:
            # One for each check: an enforcer remembers limits for good.
            limit.Enforcer(usages).enforce(
                project_id, {prefix + name: amount
                             for name, amount in requested.items()})
        except limit_exc.ProjectOverLimit as exc:
            # A release of oslo.limit before 2.7 takes -1 for a number.
            return [(info.resource_name, info.limit, info.current_usage,
                     info.delta) for info in exc.over_limit_info_list
                    if info.limit >= 0]
        return []


class Quotas:
    """Admits requests as long as their project stays within its limits.

    :param options: [preemption_quota] of the configuration
    :param servers: a nova_preempt.scheduler.usage.ProjectServers
    :param note: called with (context, spec_obj, instance_uuids, reason) when
        a request is refused
    """

    def __init__(self, options, servers, note=lambda *args: None):
        self._limits = {'options': lambda: OptionLimits(options),
                        'oslo_limit': KeystoneLimits,
                        'none': lambda: None}[options.driver]()
        self._normal = options.enforce_normal
        self._servers = servers
        self._note = note
        self._admitted = {}       # project: {uuid: Amounts}
        self._locks = lockutils.Semaphores()

    @contextlib.contextmanager
    def admitted(self, context, spec_obj, instance_uuids, preemptible):
        """Within, the request counts; if it fails, it does not any more.

        :raises NoValidHost: the project would be over a limit
        """
        project_id = spec_obj.project_id
        if (self._limits is None or not (preemptible or self._normal)
                or not self._limits.is_bounded(project_id, preemptible)):
            yield
            return
        # One at a time of each project: what one of two requests is given
        # must count for the other.
        with self._lock(project_id):
            reason = self._refusal(project_id, spec_obj.flavor,
                                   instance_uuids, preemptible)
            if not reason:
                self._remember(project_id, spec_obj.flavor, instance_uuids,
                               preemptible)
        if reason:
            LOG.info('Server %(server)s is refused: %(reason)s',
                     {'server': instance_uuids[0], 'reason': reason})
            self._note(context, spec_obj, instance_uuids, reason)
            raise exception.NoValidHost(reason=reason)
        try:
            yield
        except BaseException:
            self._forget(project_id, instance_uuids)
            raise

    def _lock(self, project_id):
        return lockutils.lock(project_id, semaphores=self._locks)

    def _remember(self, project_id, flavor, uuids, preemptible):
        amounts = usage.Amounts(preemptible, flavor.vcpus, flavor.memory_mb)
        self._admitted.setdefault(project_id, {}).update(
            dict.fromkeys(uuids, amounts))

    def _forget(self, project_id, uuids):
        with self._lock(project_id):
            admitted = self._admitted.get(project_id, {})
            for uuid in uuids:
                admitted.pop(uuid, None)

    def _refusal(self, project_id, flavor, uuids, preemptible):
        """Why the request would put the project over a limit, '' if not."""
        try:
            others, own = self._count(project_id, set(uuids), preemptible)
        except Exception:
            LOG.exception('Cannot count the servers of project %s.',
                          project_id)
            return 'the servers of the project cannot be counted'
        wanted = [usage.Amounts(preemptible, flavor.vcpus,
                                flavor.memory_mb)] * len(uuids)
        own, others, wanted = _sum(own), _sum(others), _sum(wanted)
        # A server that moves adds nothing, one that is resized the rest.
        requested = {name: wanted[name] - own[name] for name in NAMES
                     if wanted[name] > own[name]}
        if not requested:
            return ''
        used = {name: others[name] + own[name] for name in NAMES}
        try:
            over = self._limits.over(project_id, preemptible, used, requested)
        except Exception:
            LOG.exception('Cannot get the limits of project %s.', project_id)
            return 'the limits of the project cannot be read'
        return _reason(project_id, preemptible, over) if over else ''

    def _count(self, project_id, uuids, preemptible):
        """The Amounts of other servers, and of those of the request."""
        # In this order: a server goes from the requests into a cell.
        requests = self._servers.requests(project_id)
        servers = self._servers.servers(
            # A cell that is down must not stop what Nova lets in; idle
            # capacity is not owed to anybody.
            project_id, partial=not preemptible)
        admitted = self._still_admitted(project_id, requests, servers)
        # Of requests that are being scheduled, the earlier ones count. By
        # this rule two schedulers agree on who comes first.
        mine = min((item.order for uuid, item in requests.items()
                    if uuid in uuids), default=None)
        found = {uuid: [item.amounts] for uuid, item in requests.items()
                 if uuid in admitted or mine is None or item.order < mine}
        for uuid, item in servers.items():
            found[uuid] = item.amounts
        others, own = [], []
        for uuid, amounts in found.items():
            if uuid in uuids:
                own.append(_largest(amounts, preemptible))
                continue
            if uuid in admitted:
                amounts = [*amounts, admitted[uuid]]
            others.append(_largest(amounts, preemptible))
        return ([item for item in others if item],
                [item for item in own if item])

    def _still_admitted(self, project_id, requests, servers):
        """{uuid: Amounts} of what Nova's records may not show yet."""
        # Nova marks a server as busy before it asks for a host, and until
        # its record has the new flavor.
        admitted = {
            uuid: amounts for uuid, amounts
            in self._admitted.get(project_id, {}).items()
            if uuid in requests or (uuid in servers and servers[uuid].busy)}
        self._admitted[project_id] = admitted
        return admitted


def _largest(amounts, preemptible):
    """What counts of a server of several sizes; None if of other kinds."""
    amounts = [item for item in amounts if item.preemptible == preemptible]
    if not amounts:
        return None
    return usage.Amounts(preemptible, max(item.vcpus for item in amounts),
                         max(item.memory_mb for item in amounts))


def _sum(amounts):
    return {'servers': len(amounts),
            'vcpus': sum(item.vcpus for item in amounts),
            'memory_mb': sum(item.memory_mb for item in amounts)}


def _reason(project_id, preemptible, over):
    kind = 'preemptible' if preemptible else 'normal'
    limits = '; '.join(
        f'{name}: limit {limit_}, used {used}, requested {requested}'
        for name, limit_, used, requested in over)
    return (f'Quota of {kind} servers exceeded for project {project_id}: '
            f'{limits}.')
