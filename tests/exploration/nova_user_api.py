# SPDX-License-Identifier: Apache-2.0
"""Nova's API in memory as users see it, on a nova.MemoryNova.

As nova/api/openstack/compute and nova/compute/api.py: a boot is refused by
quotas, or makes the servers one after the other and takes them back where one
cannot be made. Differences that are left: bodies are not validated, all images
and key pairs exist, and there are no server groups.
"""

from novaclient import exceptions as nova_exc

from tests.exploration import operations
from tests.exploration import placement

#: {name in GET /limits: (of what, its use in GET /limits)}
_LIMITS = {'maxTotalInstances': ('instances', 'totalInstancesUsed'),
           'maxTotalCores': ('cores', 'totalCoresUsed'),
           'maxTotalRAMSize': ('ram', 'totalRAMUsed')}


def project_of(user):
    """The project in which a user acts: each has one of his own."""
    return user.removeprefix('user of ')


def _fault(status, kind, message):
    return placement.Response(status, {
        kind: {'code': status, 'message': message}})


class UserApi:
    """Answers requests of users.

    :param world: a world.World
    :ivar quotas: {'instances', 'cores' or 'ram': the most of a project}
    """

    def __init__(self, world):
        self._world = world
        self._nova = world.nova
        self.quotas = {}

    def call(self, user, method, url, body=None):
        """Answer a request, with a placement.Response."""
        kind, _, name = url.strip('/').partition('/')
        if (method, url) == ('POST', '/servers'):
            return self._boot(user, body)
        if method == 'DELETE' and kind == 'servers':
            return self._delete(name)
        if kind == 'limits':
            return placement.Response(200, {'limits': {
                'absolute': self._limits(project_of(user))}})
        if kind == 'flavors':
            return self._flavor(name)
        if kind in ('images', 'os-keypairs'):
            return placement.Response(200, {})
        raise NotImplementedError(f'{method} {url}')

    # -- servers ---------------------------------------------------------

    def _boot(self, user, body):
        server = body['server']
        flavor = self._find(server['flavorRef'])
        if flavor is None:
            return _fault(400, 'badRequest', 'Flavor could not be found.')
        project, count = project_of(user), server['max_count']
        over = self._over(project, flavor, count)
        if over:
            return _fault(403, 'forbidden', (
                f'Quota exceeded for {over}: Requested {count}, but already '
                f'used all {over}'))
        made = self._nova.fails('provision')
        servers = self._nova.request(
            flavor, project, count, body.get('os:scheduler_hints'),
            server.get('tags', ()), user)
        if made:
            # One of them could not be made: those before it are taken back.
            self._nova.withdraw(servers)
            return _fault(500, 'computeFault', 'Unexpected API Error.')
        self._nova.build(servers)
        return placement.Response(202, {'server': {'id': servers[0].uuid}})

    def _delete(self, uuid):
        try:
            self._nova.act(uuid, 'delete', is_admin=False)
        except nova_exc.NotFound:
            return _fault(404, 'itemNotFound', 'Instance could not be found.')
        except nova_exc.Conflict as exc:
            return _fault(409, 'conflictingRequest', str(exc))
        return placement.Response(204)

    # -- flavors and quotas ----------------------------------------------

    @staticmethod
    def _find(flavor_id):
        return next((each for each in operations.FLAVORS
                     if each.flavorid == str(flavor_id)), None)

    def _flavor(self, flavor_id):
        found = self._find(flavor_id)
        if found is None:
            return _fault(404, 'itemNotFound', 'Flavor could not be found.')
        return placement.Response(200, {'flavor': {
            'id': found.flavorid, 'name': found.name, 'vcpus': found.vcpus,
            'ram': found.memory_mb, 'disk': found.root_gb, 'swap': '',
            'OS-FLV-EXT-DATA:ephemeral': 0,
            'extra_specs': dict(found.extra_specs)}})

    def used(self, project):
        """Return {'instances', 'cores' or 'ram': use of a project}."""
        found = [server.flavor for server in self._nova.servers.values()
                 if server.project_id == project and not server.deleted
                 and (server.is_requested or server.cell is not None)]
        return {'instances': len(found),
                'cores': sum(each.vcpus for each in found),
                'ram': sum(each.memory_mb for each in found)}

    def _over(self, project, flavor, count):
        used = self.used(project)
        more = {'instances': count, 'cores': count * flavor.vcpus,
                'ram': count * flavor.memory_mb}
        return ', '.join(name for name, most in self.quotas.items()
                         if used[name] + more[name] > most)

    def _limits(self, project):
        used = self.used(project)
        found = {}
        for name, (what, use) in _LIMITS.items():
            found[name] = self.quotas.get(what, -1)
            found[use] = used[what]
        return found
