# SPDX-License-Identifier: Apache-2.0
"""Placement in memory, as far as Nova and nova_preempt call it.

Microversion 1.36: providers with generations, inventories and allocations,
consumers with generations. One call is one transaction. tests/cloud_port runs
the same tests on it and on Placement. Differences that are left:

* A host is a single provider, whose inventories and traits never change; its
  aggregates are none. So no provider is ever over its capacity.
* A listing knows name, uuid, in_tree, resources and required, candidates
  these, root_required and limit, of one group; anything else is an error.
* Placement refuses at random, with 409, writes that meet each other on a
  provider, after ten tries of its own.
* Only a body's amounts are validated.
"""

import dataclasses
import itertools
import json
import urllib.parse

import os_resource_classes

#: What a listing may ask for.
_PARAMETERS = ('name', 'uuid', 'in_tree', 'resources', 'required',
               'root_required')


class Response:
    """The attributes of requests.Response that Nova's client reads."""

    def __init__(self, status_code, body=None):
        self.status_code = status_code
        self.text = '' if body is None else json.dumps(body)
        self.headers = {'x-openstack-request-id': 'req-0'}

    def __bool__(self):
        return self.status_code < 400

    def json(self):
        return json.loads(self.text)


def _error(status_code, detail, code='placement.undefined_code'):
    return Response(status_code, {'errors': [
        {'status': status_code, 'detail': detail, 'code': code}]})


@dataclasses.dataclass
class Provider:
    """A host; allocations are {uuid of a consumer: {class: amount}}."""

    uuid: str
    name: str
    inventories: dict
    generation: int = 1
    traits: frozenset = frozenset()
    allocations: dict = dataclasses.field(default_factory=dict)

    def used(self, without=()):
        found = dict.fromkeys(self.inventories, 0)
        for uuid, resources in self.allocations.items():
            if uuid not in without:
                for name, amount in resources.items():
                    found[name] = found.get(name, 0) + amount
        return found

    def free(self, without=()):
        used = self.used(without)
        return {name: int((item['total'] - item['reserved'])
                          * item['allocation_ratio']) - used[name]
                for name, item in self.inventories.items()}


@dataclasses.dataclass
class Consumer:
    generation: int
    project_id: str
    user_id: str
    birth: int = 0


class MemoryPlacement:
    """Placement in memory.

    :ivar providers: {uuid: Provider}
    :ivar consumers: {uuid: Consumer} of those that have allocations, or were
        made without any
    :ivar lost: consumers of which a late claim has taken what they have since
        they were made anew, with the generation that the claim has
    :ivar strays: consumers to which such a claim has given it
    """

    def __init__(self):
        self._births = itertools.count(1)
        self._outdated = set()
        self.strays = set()
        self.providers = {}
        self.consumers = {}
        self.lost = set()

    def add(self, uuid, name, amounts, traits=()):
        """Add a host; {class: amount}."""
        self.providers[uuid] = Provider(uuid, name, {
            key: {'total': amount, 'reserved': 0, 'min_unit': 1,
                  'max_unit': amount, 'step_size': 1, 'allocation_ratio': 1.0}
            for key, amount in amounts.items()}, traits=frozenset(traits))

    def allocations(self, consumer):
        """{uuid of a provider: {class: amount}} of a consumer."""
        return {uuid: dict(provider.allocations[consumer])
                for uuid, provider in self.providers.items()
                if consumer in provider.allocations}

    def births(self, consumers):
        """Return {uuid: its number} of consumers that exist."""
        return {uuid: self.consumers[uuid].birth for uuid in consumers
                if uuid in self.consumers}

    def call(self, method, url, body=None, births=None):
        """Answer a request.

        :param births: those of its consumers when it was sent
        :returns: a Response
        """
        self._outdated = {
            uuid for uuid, birth in self.births(births or ()).items()
            if birth != births[uuid]}
        path, _, query = url.partition('?')
        params = urllib.parse.parse_qsl(query)
        parts = path.strip('/').split('/')
        name = f'_{method}_{parts[0]}'
        return getattr(self, name)(parts[1:], params, body)

    # -- providers -------------------------------------------------------

    def _get_resource_providers(self, parts, params, _body):
        if not parts:
            return Response(200, {'resource_providers': [
                self._listed(item) for item in self.providers.values()
                if self._passes(item, params)]})
        provider = self.providers.get(parts[0])
        if provider is None:
            return _error(404, f'No resource provider with uuid {parts[0]}')
        if len(parts) == 1:
            return Response(200, self._listed(provider))
        generation = {'resource_provider_generation': provider.generation}
        return Response(200, generation | {
            'inventories': lambda: {'inventories': provider.inventories},
            'allocations': lambda: {'allocations': {
                uuid: {'resources': resources} for uuid, resources
                in provider.allocations.items()}},
            'traits': lambda: {'traits': sorted(provider.traits)},
            'aggregates': lambda: {'aggregates': []},
        }[parts[1]]())

    @staticmethod
    def _listed(provider):
        return {'uuid': provider.uuid, 'name': provider.name,
                'generation': provider.generation,
                'root_provider_uuid': provider.uuid,
                'parent_provider_uuid': None}

    @staticmethod
    def _passes(provider, params):
        for name, value in params:
            if name not in _PARAMETERS:
                raise NotImplementedError(name)
            if name == 'name' and provider.name != value:
                return False
            if name in ('uuid', 'in_tree') and provider.uuid != value:
                return False
            if name in ('required', 'root_required'):
                for trait in value.split(','):
                    if (trait.lstrip('!') in provider.traits) == (
                            trait.startswith('!')):
                        return False
            if name == 'resources':
                free = provider.free()
                if any(free.get(key, 0) < amount
                       for key, amount in _amounts(value).items()):
                    return False
        return True

    def _get_traits(self, _parts, _params, _body):
        return Response(200, {'traits': sorted(
            {trait for item in self.providers.values()
             for trait in item.traits})})

    def _get_allocation_candidates(self, _parts, params, _body):
        asked, limit = {}, None
        for name, value in params:
            if name == 'resources':
                asked = _amounts(value)
            elif name == 'limit':
                limit = int(value)
        wanted = [(name, value) for name, value in params if name != 'limit']
        found = [provider for provider in self.providers.values()
                 if self._passes(provider, wanted)][:limit]
        return Response(200, {
            'allocation_requests': [
                {'allocations': {item.uuid: {'resources': asked}},
                 'mappings': {'': [item.uuid]}} for item in found],
            'provider_summaries': {item.uuid: {
                'resources': {name: {
                    'capacity': item.free()[name] + item.used()[name],
                    'used': item.used()[name]} for name in item.inventories},
                'traits': sorted(item.traits), 'parent_provider_uuid': None,
                'root_provider_uuid': item.uuid} for item in found}})

    # -- allocations -----------------------------------------------------

    def _get_allocations(self, parts, _params, _body):
        consumer = self.consumers.get(parts[0])
        if consumer is None or not self.allocations(parts[0]):
            return Response(200, {'allocations': {}})
        return Response(200, {
            'allocations': {uuid: {
                'resources': resources,
                'generation': self.providers[uuid].generation}
                for uuid, resources in self.allocations(parts[0]).items()},
            'consumer_generation': consumer.generation,
            'project_id': consumer.project_id, 'user_id': consumer.user_id})

    def _put_allocations(self, parts, _params, body):
        return self._set({parts[0]: body})

    def _post_allocations(self, _parts, _params, body):
        return self._set(body)

    def _delete_allocations(self, parts, _params, _body):
        if not self.allocations(parts[0]):
            return _error(404, f'No allocations for consumer {parts[0]}')
        self._forget(parts[0])
        return Response(204)

    def _forget(self, uuid):
        for provider in self.providers.values():
            provider.allocations.pop(uuid, None)
        self.consumers.pop(uuid, None)

    def _set(self, changes):
        """Make these the allocations of these consumers, all or none."""
        invalid = self._invalid(changes)
        if invalid is not None:
            return invalid
        for uuid, body in changes.items():
            consumer = self.consumers.get(uuid)
            known = None if consumer is None else consumer.generation
            if body['consumer_generation'] != known:
                return _error(
                    409, f'consumer generation conflict - expected {known} '
                    f'but got {body["consumer_generation"]}',
                    'placement.concurrent_update')
            for provider in body['allocations']:
                if provider not in self.providers:
                    return _error(400, f'Allocation for resource provider '
                                       f"'{provider}' that does not exist.")
        wanted = _wanted(changes)
        for uuid, sums in wanted.items():
            free = self.providers[uuid].free(without=changes)
            for name, amount in sums.items():
                if free.get(name, 0) < amount:
                    return _error(409, 'Unable to allocate inventory: '
                                       f'{name} on resource provider {uuid}')
        self._write(changes)
        return Response(204)

    def _invalid(self, changes):
        """Return the Response to an invalid request, None if valid."""
        for item in (item for body in changes.values()
                     for item in body['allocations'].values()):
            amounts = item['resources']
            if min(amounts.values(), default=0) < 1:
                return _error(400, f'JSON does not validate: {amounts}')
            if not self._knows(amounts):
                return _error(400, f'No such resource class in {amounts}')
        return None

    def _knows(self, names):
        """Return whether Placement has all of these resource classes."""
        return set(names).issubset((
            *os_resource_classes.STANDARDS,
            *(name for provider in self.providers.values()
              for name in provider.inventories)))

    def _note_late(self, changes):
        """Note what a claim takes that was sent before consumers were made."""
        written = {provider for body in changes.values()
                   for provider in body['allocations']}
        for uuid, body in changes.items():
            had = self.allocations(uuid)
            if uuid in self._outdated or (len(changes) > 1 and had and (
                    written and written.isdisjoint(had))):
                self.lost.add(uuid)
            elif self._outdated and uuid not in self.consumers:
                self.strays.add(uuid)
            elif body['allocations'] and body['allocations'].keys() != (
                    had.keys()):
                self.lost.discard(uuid)

    def _write(self, changes):
        self._note_late(changes)
        touched = set()
        for uuid, body in changes.items():
            had = self.allocations(uuid)
            for provider in self.providers.values():
                if provider.allocations.pop(uuid, None) is not None and (
                        not body['allocations']):
                    touched.add(provider.uuid)
            if not body['allocations']:
                # Placement makes it, and deletes it only with allocations.
                self.consumers.setdefault(uuid, Consumer(
                    0, body['project_id'], body['user_id']))
                if had:
                    del self.consumers[uuid]
                continue
            before = self.consumers.get(uuid)
            self.consumers[uuid] = Consumer(
                (body['consumer_generation'] or 0) + 1, body['project_id'],
                body['user_id'],
                before.birth if before else next(self._births))
            for provider, item in body['allocations'].items():
                self.providers[provider].allocations[uuid] = dict(
                    item['resources'])
                touched.add(provider)
        for uuid in touched:
            self.providers[uuid].generation += 1


def _amounts(text):
    return {name: int(amount) for name, amount in (
        item.split(':') for item in text.split(','))}


def _wanted(changes):
    """{uuid of a provider: {class: amount}} of new allocations together."""
    found = {}
    for body in changes.values():
        for provider, item in body['allocations'].items():
            sums = found.setdefault(provider, {})
            for name, amount in item['resources'].items():
                sums[name] = sums.get(name, 0) + amount
    return found
