# SPDX-License-Identifier: Apache-2.0
"""Calls of Placement that Nova's own client does not have.

All of it goes through the connection of Nova's SchedulerReportClient, so that
no credentials but Nova's are needed.
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

# What it says of a provider that is not there any more: nothing was done.
_GONE = 'that does not exist'

# The codes of its refusals of allocations: a generation has moved, or there
# is no room, to which it gives no code of its own.
CONCURRENT_UPDATE = 'placement.concurrent_update'
NO_ROOM = 'placement.undefined_code'

# On how many hosts it is looked for room at once.
_ROOMS = 100


class PlacementError(Exception):
    """Placement could not be reached or gave an answer we cannot use."""


class NoAnswer(PlacementError):
    """Placement did not answer, whatever it was asked."""


class Conflict(Exception):
    """Placement refused a change: somebody else was faster.

    HTTP 409, or 400 where a provider is gone.

    :param code: what Placement calls it, '' where a provider is gone or where
        it does not say
    """

    def __init__(self, text='', code=''):
        super().__init__(text)
        self.code = code

    @property
    def is_capacity_conflict(self):
        """Whether it will be refused again: the space is somebody else's.

        Else only what was known was old, and the next try may succeed.
        """
        return self.code == NO_ROOM


@dataclasses.dataclass(frozen=True)
class Provider:
    """A resource provider as a listing gives it."""

    uuid: str
    name: str
    generation: int
    # Of the tree that it is in; its own if it is the root.
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
        """{(uuid of a provider, class): amount}, as of core hosts."""
        return slots(self.allocations)

    def with_allocations(self, allocations: dict[str, dict]) -> Self:
        return dataclasses.replace(self, allocations=allocations)

    def with_slots(self, amounts: Mapping[model.Slot, int]) -> Self:
        """Return it with these allocations, without those that are not > 0."""
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
    """{(uuid of a provider, class): amount} of a Consumer's allocations."""
    return {(uuid, name): amount for uuid, item in allocations.items()
            for name, amount in item['resources'].items()}


class Placement:
    """Reads providers and consumers, and swaps allocations.

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
        """Root providers that satisfy the query, in order of their uuid.

        :param params: [(name, value)] of GET /resource_providers
        """
        return [provider for provider in self.list_all_providers(params)
                if provider.uuid == provider.root_uuid]

    def list_all_providers(self, params):
        """The same with those that have a parent."""
        url = '/resource_providers?' + urllib.parse.urlencode(params)
        body = self._call('get', url).json()
        return sorted(
            (Provider(item['uuid'], item['name'], item['generation'],
                      item.get('root_provider_uuid') or item['uuid'],
                      item.get('parent_provider_uuid') or '')
             for item in body['resource_providers']),
            key=lambda provider: provider.uuid)

    def list_traits(self):
        """The names of the traits that some provider has."""
        return self._call('get', '/traits?associated=true').json()['traits']

    def get_traits(self, uuid):
        """The traits of a provider, none if it is gone."""
        found = self._get_of_provider(uuid, 'traits')
        return found['traits'] if found else []

    def get_aggregates(self, uuid):
        """The uuids of the aggregates of a provider, none if it is gone."""
        found = self._get_of_provider(uuid, 'aggregates')
        return found['aggregates'] if found else []

    def get_provider_state(self, uuid, known=None):
        """A consistent core Provider, or None if the provider is gone.

        :param known: what is known of it. With the same generation its
            inventories are what they were; its allocations may not be, for
            Placement does not count the deletion of a consumer's.
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
        # After several changes in a row the last reading is used as it is:
        # Placement has the last word when we claim.
        return model.Provider(
            uuid, generation,
            {resource_class: model.Inventory(
                total=item['total'], reserved=item['reserved'],
                min_unit=item['min_unit'], max_unit=item['max_unit'],
                step_size=item['step_size'],
                allocation_ratio=item['allocation_ratio'])
             for resource_class, item in inventories['inventories'].items()},
            _by_consumer(allocations))

    def _get_of_provider(self, uuid, what):
        response = self._call('get', f'/resource_providers/{uuid}/{what}',
                              ok=(200, 404))
        return None if response.status_code == 404 else response.json()

    def get_consumers_in_tree(self, root_uuid):
        """The uuids of who has anything of a host or of parts of it."""
        found = set()
        for provider in self.list_all_providers([('in_tree', root_uuid)]):
            answer = self._get_of_provider(provider.uuid, 'allocations')
            if answer is not None:
                found.update(answer['allocations'])
        return found

    def get_consumer(self, uuid) -> Consumer:
        """A Consumer; one without allocations if there is none."""
        body = self._call('get', f'/allocations/{uuid}').json()
        return Consumer(uuid, body['allocations'],
                        body.get('consumer_generation'),
                        body.get('project_id', ''), body.get('user_id', ''))

    def get_room(self, resources, most=_ROOMS):
        """What is free now on hosts that have room for this.

        On some of them, where there are very many. On none where a class is
        not in Placement any more, which then refuses the question.

        :param resources: {class: amount}
        :param most: on how many
        :returns: {uuid of the root provider: {class: amount}}
        """
        url = '/allocation_candidates?' + urllib.parse.urlencode({
            'limit': most, 'resources': ','.join(
                f'{name}:{amount}'
                for name, amount in sorted(resources.items()))})
        response = self._call('get', url, ok=(200, 400))
        return {} if response.status_code == 400 else capacity.free_by_root(
            response.json()['provider_summaries'])

    def post_allocations(self, consumers):
        """Make these the allocations of these consumers, all or none.

        :param consumers: Consumers, each with the generation last seen (None
            if it should not exist yet) and the allocations it shall have
        :raises Conflict: a generation is stale or the space is taken
        :raises PlacementError: the outcome may be unknown
        """
        body = {consumer.uuid: consumer.body() for consumer in consumers}
        self._call('post', '/allocations', body, ok=(204,))

    def delete_allocations(self, uuid):
        """Take away whatever a consumer has, if anything."""
        self._call('delete', f'/allocations/{uuid}', ok=(204, 404))


def for_each(items, work):
    """Do something with each; an item that fails keeps no other waiting.

    :raises NoAnswer: at once, since all others would fail, too
    :raises PlacementError: the last, once it was tried with all
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
    """The code of an error, '' if its text has none."""
    try:
        return json.loads(text)['errors'][0].get('code', '')
    except (ValueError, LookupError, TypeError, AttributeError):
        return ''


def _by_consumer(allocations):
    """{consumer uuid: {resource class: amount}} of a provider's."""
    return {consumer: item['resources'] for consumer, item
            in allocations['allocations'].items()}
