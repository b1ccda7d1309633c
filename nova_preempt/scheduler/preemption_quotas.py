# SPDX-License-Identifier: Apache-2.0
"""Enforces quotas of preemptible and of normal servers.

Nova's API checks its own quota before it asks the scheduler and knows nothing
of kinds. Here each kind is bounded by limits of its own.

Nova's records show what was admitted a little later: a new server once it is
in a cell, a resized one once its record has the new flavor. Until then a claim
in our database counts, which is written before anything is counted: of two
requests at once, in whichever schedulers, one finds the claim of the other.
"""

import contextlib

from nova import exception
from nova.compute import vm_states
from oslo_concurrency import lockutils
from oslo_limit import exception as limit_exc
from oslo_limit import limit
from oslo_log import log as logging

from nova_preempt import exceptions
from nova_preempt.cloud import cell_calls
from nova_preempt.cloud import extra_specs as specs
from nova_preempt.cloud import instances
from nova_preempt.core import quotas as core

LOG = logging.getLogger(__name__)


def check(options):
    """Refuse options that would let projects exceed their quota.

    What stands under another project in Placement is not seen by Nova's
    quota. A resize of such a server to a normal flavor of the same size asks
    Nova for nothing more, and so only the limits here bound it.

    :param options: [preemption_quota] of the configuration
    :raises InvalidConfiguration: it would, or cannot be understood
    """
    if options.driver == 'options':
        OptionLimits(options)
    if not options.allocation_project_id:
        return
    missing = []
    if options.driver == 'none':
        missing.append('driver = options or oslo_limit')
    if not options.enforce_normal:
        missing.append('enforce_normal = true')
    if options.driver == 'options':
        missing += [f'{name} (-1 is no limit)'
                    for name in ('normal_vcpus', 'normal_memory_mb')
                    if getattr(options, name) < 0]
    if missing:
        raise exceptions.InvalidConfiguration(
            '[preemption_quota]allocation_project_id needs limits of normal '
            'servers, or users could exceed Nova\'s quota by resizing '
            'preemptible servers to normal flavors; also set: '
            + ', '.join(missing) + '.')


class OptionLimits:
    """Limits by the options of [preemption_quota].

    :raises InvalidConfiguration: a line of project_limits is not understood
    """

    def __init__(self, options):
        self._defaults = {name: options[name] for name in core.LIMITS}
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
            raise exceptions.InvalidConfiguration(
                f'[preemption_quota]project_limits has {line!r}; it takes '
                'project_id and whole numbers for '
                + ', '.join(self._defaults))
        return project_id, limits

    def _of(self, project_id, preemptible):
        return core.limits_of(
            self._defaults, self._projects.get(project_id, {}), preemptible)

    def is_bounded(self, project_id, preemptible):
        """Return whether a project has a limit of this kind."""
        return core.is_bounded(self._of(project_id, preemptible))

    def over(self, project_id, preemptible, used, requested):
        """Return an ExceededLimit for each exceeded limit.

        :param used: {name: amount} before the request
        :param requested: {name: amount}, of what it adds
        """
        return core.exceeded(
            self._of(project_id, preemptible), used, requested)


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
            return [core.ExceededLimit(info.resource_name, info.limit,
                                       info.current_usage, info.delta)
                    for info in exc.over_limit_info_list if info.limit >= 0]
        return []


class QuotaEnforcer:
    """Admits requests as long as their project stays within its limits.

    :param options: [preemption_quota] of the configuration
    :param servers: a ProjectServerReader
    :param claims: a nova_preempt.db.quota_claims.QuotaClaims
    :param note: called with (asked, reason) when a request is refused
    """

    def __init__(self, options, servers, claims, note=lambda *args: None):
        self._limits = {'options': lambda: OptionLimits(options),
                        'oslo_limit': KeystoneLimits,
                        'none': lambda: None}[options.driver]()
        self._normal = options.enforce_normal
        self._servers = servers
        self._claims = claims
        self._note = note
        self._locks = lockutils.Semaphores()

    @contextlib.contextmanager
    def admitted(self, asked, preemptible):
        """Count a request while it runs, and for good if it succeeds.

        :param asked: its nova_preempt.scheduler.request_context.RequestContext
        :raises NoValidHost: the project would be over a limit
        """
        flavor = asked.spec_obj.flavor
        project_id = asked.spec_obj.project_id
        if (self._limits is None or not (preemptible or self._normal)
                or not self._limits.is_bounded(project_id, preemptible)):
            yield
            return
        amounts = core.ServerSize(preemptible, flavor.vcpus, flavor.memory_mb)
        # One at a time of each project: what is refused in a moment must not
        # count for the next one.
        with lockutils.lock(project_id, semaphores=self._locks):
            claimed, reason = self._admit(project_id, amounts,
                                          asked.server_uuids)
        if reason:
            LOG.info('Server %s is refused: %s', asked.server_uuids[0], reason)
            self._note(asked, reason)
            raise exception.NoValidHost(reason=reason)
        try:
            yield
        except BaseException:
            self._release(claimed)
            raise

    def _admit(self, project_id, amounts, uuids):
        """Return (ids of claims, '' or why the request is refused)."""
        claimed = []
        try:
            claimed, earlier = self._claims.claim(
                project_id, dict.fromkeys(uuids, amounts))
            records = self._read(project_id, earlier)
            self._release(records.settled())
        except Exception:
            LOG.exception('Cannot count the servers of project %s.',
                          project_id)
            reason = 'the servers of the project cannot be counted'
        else:
            reason = self._refusal(
                project_id, amounts.preemptible,
                *records.usage(amounts, uuids))
        if reason:
            self._release(claimed)
        return claimed, reason

    def _release(self, ids):
        try:
            self._claims.release(ids)
        except Exception:
            # They count until Nova's records show that the request is over.
            LOG.exception('Cannot release claims of a quota.')

    def _refusal(self, project_id, preemptible, used, requested):
        """Return why the request exceeds a limit, '' if it does not."""
        if not requested:
            return ''
        try:
            over = self._limits.over(project_id, preemptible, used, requested)
        except Exception:
            LOG.exception('Cannot get the limits of project %s.', project_id)
            return 'the limits of the project cannot be read'
        return core.message(project_id, preemptible, over) if over else ''

    def _read(self, project_id, earlier):
        """Return the ProjectServers of a project.

        :param earlier: its Claims
        """
        # In this order: a server goes from the requests into a cell.
        requests = self._servers.requests(project_id)
        return core.ProjectServers(self._servers.servers(project_id), requests,
                                   earlier)


def restore_zeroed(spec_obj, classes):
    """Restore the resources that a preemptible flavor has set to 0.

    Such flavors keep out of Nova's unified limits; the scheduler claims what
    their size says all the same.

    :param spec_obj: a nova.objects.RequestSpec, whose flavor is replaced
    :param classes: the resource classes that this is done for
    """
    if not classes:
        return
    flavor = spec_obj.flavor
    extra_specs = instances.extra_specs_of(flavor)
    zeroed = core.zeroed(extra_specs, classes,
                         specs.flavor_is_preemptible(extra_specs))
    if not zeroed:
        return
    # The server keeps its flavor as it is.
    spec_obj.flavor = flavor.obj_clone()
    spec_obj.flavor.extra_specs = {
        key: value for key, value in extra_specs.items() if key not in zeroed}


class ProjectServerReader:
    """Reads Nova's records of the servers of a project.

    :param get_cells: returns {uuid: CellMapping}, without cell0: what is
        there was never placed
    :param hinted: given uuids, returns the set of those that are preemptible
        by a hint
    :param remembered: given a project and uuids of cells, returns the
        model.PreemptibleServers that were seen there last
    """

    def __init__(self, get_cells, hinted, remembered):
        self._get_cells = get_cells
        self._hinted = hinted
        self._remembered = remembered

    def servers(self, project_id):
        """Return {uuid: CountedServer} of the servers in cells.

        In a cell that cannot be read no server begins, so what is remembered
        of it is as good as a reading. Normal servers are not remembered: as
        with Nova's own quota, those of such a cell do not count.
        """
        found, away = [], set()
        for uuid, answer in cell_calls.gather(
                self._get_cells().values(), instances.read, filters={
                    'project_id': project_id, 'deleted': False},
                attrs=['flavor'], make=instances.as_instance).items():
            if isinstance(answer, Exception):
                LOG.warning('Cannot read the servers of cell %(cell)s: '
                            '%(exc)s. For quotas the preemptible ones that '
                            'were seen last count, and no normal ones.',
                            {'cell': uuid, 'exc': answer})
                away.add(uuid)
            else:
                found.extend(answer)
        counted = {server.uuid: core.CountedServer(
            [core.ServerSize(True, server.vcpus, server.memory_mb)],
            server.task_state is not None)
            for server in (self._remembered(project_id, away) if away else ())}
        hinted = self._hinted([instance.uuid for instance in found])
        return counted | {
            instance.uuid: _server(instance, instance.uuid in hinted)
            for instance in found
            # A server that was never placed, and will not be.
            if instance.host or instance.vm_state != vm_states.ERROR}

    @staticmethod
    def requests(project_id):
        """Return the set of uuids of servers that are in no cell yet."""
        return instances.requested(project_id)


def _server(instance, by_hint):
    # While a resize is not confirmed there are two, either of which may stay.
    flavors = [flavor for flavor in (
        instance.flavor, instance.new_flavor, instance.old_flavor)
        if flavor is not None]
    return core.CountedServer(
        [_amounts(flavor, by_hint) for flavor in flavors],
        instance.task_state is not None)


def _amounts(flavor, by_hint):
    extra_specs = instances.extra_specs_of(flavor)
    return core.ServerSize(
        by_hint or specs.flavor_is_preemptible(extra_specs),
        flavor.vcpus, flavor.memory_mb)
