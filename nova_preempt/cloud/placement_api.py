# SPDX-License-Identifier: Apache-2.0
"""Client of Placement calls that Nova's client does not have.

It uses the connection of Nova's SchedulerReportClient and needs no credentials
of its own.
"""

from collections.abc import Mapping
import dataclasses
import json
from typing import Self
import urllib.parse

from keystoneauth1 import exceptions as ks_exc

from nova_preempt.core import capacity
from nova_preempt.core import model

# 1.36 is what Nova claims with (SAME_SUBTREE_VERSION). It has forbidden
# aggregates (1.32), consumer generations (1.28) and the consumer without a
# type (< 1.38), exactly as Nova's own allocations.
VERSION = '1.36'

# Placement's message for a deleted provider; nothing was changed.
_INVENTORY = ('total', 'reserved', 'min_unit', 'max_unit', 'step_size',
              'allocation_ratio')
_GONE = 'that does not exist'

# Error codes of refused allocations: a generation has changed; or there is no
# capacity, for which Placement has no code of its own.
CONCURRENT_UPDATE = 'placement.concurrent_update'
NO_ROOM = 'placement.undefined_code'

# The most hosts of one query for capacity.
_ROOMS = 100


class PlacementError(Exception):
    """Placement cannot be reached, or its answer is unexpected."""


class NoAnswer(PlacementError):
    """Placement does not answer."""


class Conflict(Exception):
    """Placement refused a change because of a concurrent one.

    HTTP 409, or 400 if a provider is gone.

    :param code: Placement's error code, '' if a provider is gone or there is
        no code
    """

    def __init__(self, text='', code=''):
        super().__init__(text)
        self.code = code

    @property
    def is_capacity_conflict(self):
        """Return whether capacity is missing, so that a retry fails.

        Otherwise a generation was outdated, and a retry may succeed.
        """
        return self.code == NO_ROOM


@dataclasses.dataclass(frozen=True)
class Provider:
    """A resource provider as a listing gives it."""

    uuid: str
    name: str
    generation: int
    # The root of its tree, itself if it is the root.
    root_uuid: str = ''
    parent_uuid: str = ''


@dataclasses.dataclass(frozen=True)
class Consumer:
    """A consumer's allocations, {} and generation None if it has none."""

    uuid: str
    allocations: dict[str, dict]
    generation: int | None = None
    project_id: str = ''
    user_id: str = ''

    @property
    def slots(self):
        """{(provider uuid, class): amount}, as in core hosts."""
        return slots(self.allocations)

    def with_allocations(self, allocations: dict[str, dict]) -> Self:
        return dataclasses.replace(self, allocations=allocations)

    def with_slots(self, amounts: Mapping[model.Slot, int]) -> Self:
        """Return it with these allocations, omitting amounts of 0 or less."""
        found: dict[str, dict] = {}
        for (uuid, name), amount in amounts.items():
            if amount > 0:
                found.setdefault(uuid, {'resources': {}})['resources'][
                    name] = amount
        return self.with_allocations(found)

    def body(self):
        return {'allocations': {uuid: {'resources': item['resources']}
                                for uuid, item in self.allocations.items()},
                'project_id': self.project_id,
                'user_id': self.user_id,
                'consumer_generation': self.generation}


def slots(allocations) -> dict[model.Slot, int]:
    """Return {(provider uuid, class): amount} of a Consumer's allocations."""
    return {(uuid, name): amount for uuid, item in allocations.items()
            for name, amount in item['resources'].items()}


class Placement:
    """Reads providers and consumers, and writes allocations.

    :param get_client: returns Nova's SchedulerReportClient
    """

    def __init__(self, get_client):
        self._get_client = get_client

    def _call(self, method, url, *args, ok=(200,)):
        client = self._get_client()
        try:
            response = getattr(client, method)(url, *args, version=VERSION)
        except ks_exc.ClientException as exc:
            raise NoAnswer(f'{method.upper()} {url}: {exc}') from exc
        if response.status_code == 409:
            raise Conflict(response.text, _code(response.text))
        if response.status_code == 400 and _GONE in response.text:
            raise Conflict(response.text)
        if response.status_code not in ok:
            raise PlacementError(
                f'{method.upper()} {url}: {response.status_code} '
                f'{response.text}')
        return response

    def list_providers(self, params):
        """Return root providers that satisfy a query, sorted by uuid.

        :param params: [(name, value)] of GET /resource_providers
        """
        return [provider for provider in self.list_all_providers(params)
                if provider.uuid == provider.root_uuid]

    def list_all_providers(self, params):
        """Return all providers that satisfy a query, sorted by uuid."""
        url = '/resource_providers?' + urllib.parse.urlencode(params)
        body = self._call('get', url).json()
        return sorted(
            (Provider(item['uuid'], item['name'], item['generation'],
                      item.get('root_provider_uuid') or item['uuid'],
                      item.get('parent_provider_uuid') or '')
             for item in body['resource_providers']),
            key=lambda provider: provider.uuid)

    def list_traits(self):
        """Return the names of the traits that any provider has."""
        return self._call('get', '/traits?associated=true').json()['traits']

    def get_traits(self, uuid):
        """Return the traits of a provider, [] if it is gone."""
        found = self._get_of_provider(uuid, 'traits')
        return found['traits'] if found else []

    def get_aggregates(self, uuid):
        """Return uuids of a provider's aggregates, [] if it is gone."""
        found = self._get_of_provider(uuid, 'aggregates')
        return found['aggregates'] if found else []

    def get_provider_state(self, uuid, known=None):
        """Read a consistent core Provider, None if the provider is gone.

        :param known: the Provider as read before. Its inventories are reused
            if the generation is the same, its allocations are not: Placement
            does not raise the generation when a consumer's are deleted.
        """
        for _ in range(4):
            allocations = self._get_of_provider(uuid, 'allocations')
            if known and allocations and known.generation == allocations[
                    'resource_provider_generation']:
                return dataclasses.replace(
                    known, allocations=_by_consumer(allocations))
            inventories = self._get_of_provider(uuid, 'inventories')
            if inventories is None or allocations is None:
                return None
            generation = allocations['resource_provider_generation']
            if inventories['resource_provider_generation'] == generation:
                break
        # After several changes in a row the last reading is used: Placement
        # checks it again when we claim.
        return model.Provider(
            uuid, generation,
            {resource_class: model.Inventory(
                **{name: item[name] for name in _INVENTORY})
             for resource_class, item in inventories['inventories'].items()},
            _by_consumer(allocations))

    def _get_of_provider(self, uuid, what):
        response = self._call('get', f'/resource_providers/{uuid}/{what}',
                              ok=(200, 404))
        return None if response.status_code == 404 else response.json()

    def get_consumers_in_tree(self, root_uuid):
        """Return uuids of the consumers of a provider tree, as a set."""
        found = set()
        for provider in self.list_all_providers([('in_tree', root_uuid)]):
            answer = self._get_of_provider(provider.uuid, 'allocations')
            if answer is not None:
                found.update(answer['allocations'])
        return found

    def get_consumer(self, uuid) -> Consumer:
        """Read a Consumer; it has no allocations if it does not exist."""
        body = self._call('get', f'/allocations/{uuid}').json()
        return Consumer(uuid, body['allocations'],
                        body.get('consumer_generation'),
                        body.get('project_id', ''), body.get('user_id', ''))

    def get_room(self, resources, most=_ROOMS):
        """Return the free capacity of hosts that have room for resources.

        {} if a class is not in Placement any more, which refuses the query.

        :param resources: {class: amount}
        :param most: the maximum number of hosts
        :returns: {uuid of the root provider: {class: free amount}}
        """
        url = '/allocation_candidates?' + urllib.parse.urlencode({
            'limit': most, 'resources': ','.join(
                f'{name}:{amount}'
                for name, amount in sorted(resources.items()))})
        response = self._call('get', url, ok=(200, 400))
        return {} if response.status_code == 400 else capacity.free_by_root(
            response.json()['provider_summaries'])

    def post_allocations(self, consumers):
        """Replace the allocations of consumers in one transaction.

        :param consumers: Consumers with their new allocations and the
            generation last read (None if the consumer must not exist yet)
        :raises Conflict: a generation is outdated, or capacity is missing
        :raises PlacementError: the outcome may be unknown
        """
        body = {consumer.uuid: consumer.body() for consumer in consumers}
        self._call('post', '/allocations', body, ok=(204,))

    def delete_allocations(self, uuid):
        """Delete all allocations of a consumer."""
        self._call('delete', f'/allocations/{uuid}', ok=(204, 404))


def for_each(items, work):
    """Call a function for each item; a failure does not skip later items.

    :raises NoAnswer: at once, for it would fail for all other items
    :raises PlacementError: the last one, after all items
    """
    failure = None
    for item in items:
        try:
            work(item)
        except NoAnswer:
            raise
        except PlacementError as exc:
            failure = exc
    if failure is not None:
        raise failure


def _code(text):
    """Return Placement's error code, '' if there is none."""
    try:
        return json.loads(text)['errors'][0].get('code', '')
    except (ValueError, LookupError, TypeError, AttributeError):
        return ''


def _by_consumer(allocations):
    """Return {consumer uuid: {class: amount}} of a provider's allocations."""
    return {consumer: item['resources'] for consumer, item
            in allocations['allocations'].items()}
