# SPDX-License-Identifier: Apache-2.0
"""Base classes of resources and of the proxy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
import functools
import itertools
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

from keystoneauth1 import adapter
from keystoneauth1 import discover
from openstack import exceptions
from openstack import proxy
from openstack import resource
from openstack import utils

from nova_preempt import url_segments

if TYPE_CHECKING:
    import requests

ResourceT = TypeVar('ResourceT', bound=resource.Resource)


class Resource(resource.Resource):
    """A resource of the Preemption API.

    Unknown values of a request are sent as well, so that the service refuses
    them. Afterwards a resource has the values of the response only.

    _max_microversion is the version that introduced the resource or extended
    it last, 1.1 for most; _least_microversion is then the version that
    introduced it.
    """

    _max_microversion = '1.1'
    _least_microversion: str | None = None

    _allow_unknown_attrs_in_body = True
    commit_method: Literal['POST', 'PATCH', 'PUT'] = 'PATCH'
    # Requests without changes are sent as well; the service refuses them.
    allow_empty_commit = True
    #: The part of the path after the id.
    path_end = ''

    @classmethod
    @functools.cache
    def _attributes_iterator(cls, *components: Any) -> Any:
        """Return the attributes, which openstacksdk searches each time.

        With them kept, a resource is created in a quarter of the time.
        """
        return tuple(super()._attributes_iterator(*components))

    def answer(self) -> dict[str, Any]:
        """Return the response of the service as a dict."""
        return dict(self._body.attributes)

    def _ask(self, session: adapter.Adapter, path: str, body: dict[str, Any]
             ) -> Self:
        """Send a POST request, and update this resource from the response."""
        self._translate_response(session.post(
            path, json=body, microversion=self._get_microversion(session)))
        return self

    @classmethod
    def _get_microversion(cls, session: adapter.Adapter,
                          action: str | None = None) -> str:
        """Return the microversion of requests.

        :param action: passed by older releases of openstacksdk
        :raises NotSupported: the service, or the default_microversion that
            is configured, is too old
        """
        latest = cls._max_microversion
        needed = cls._least_microversion or latest
        version = (session.default_microversion or
                   utils.maximum_supported_microversion(session, latest) or
                   latest)
        if (discover.normalize_version_number(version) <
                discover.normalize_version_number(needed)):
            raise exceptions.NotSupported(
                f'{cls.__name__} needs microversion {needed} of the '
                f'Preemption API, but {version} is used.')
        return version

    @classmethod
    def _get_next_link(
            cls, uri: str, response: requests.Response, data: dict[str, Any],
            marker: str | None, limit: str | None, total_yielded: int
    ) -> tuple[str | None, Mapping[str, str | list[str] | int | None]]:
        # Reuse the URL of this page: behind a proxy the service may not know
        # its own address.
        if data.get(f'{cls.resources_key}_links'):
            return uri, {'marker': marker, 'limit': limit}
        return None, {}

    def _prepare_request(self, requires_id: bool | None = None, *,
                         base_path: str | None = None, **values: Any
                         ) -> resource._Request:
        base_path = base_path or self.base_path
        if self.requires_id and requires_id is not False:
            if self.id is None:
                raise exceptions.InvalidRequest(
                    f'The id of the {type(self).__name__} is missing.')
            # Names of hosts may be unfit for a path.
            try:
                name = url_segments.segment(self.id)
            except url_segments.NotASegment as exc:
                raise exceptions.InvalidRequest(str(exc)) from None
            base_path = f'{base_path}/{name.replace("%", "%%")}{self.path_end}'
        return super()._prepare_request(
            requires_id=False, base_path=base_path, **values)

    def _translate_response(self, response: requests.Response, *args: Any,
                            **values: Any) -> None:
        if response.status_code < 400 and response.content:
            # Drop the values of the request.
            for known in (self._body.attributes, self._unknown_attrs_in_body):
                known.clear()
            dict.clear(self)
        super()._translate_response(response, *args, **values)


class SingletonResource(Resource):
    """A resource without an id."""

    requires_id = False
    allow_fetch = True


class Proxy(proxy.Proxy):
    """Base of "conn.preemption": requests of its methods to the API."""

    def _all(self, kind: type[ResourceT], max_items: int | None = None,
             query: Mapping[str, Any] | None = None) -> Iterator[ResourceT]:
        # The API has booleans as JSON has them.
        query = {name: str(value).lower() if isinstance(value, bool) else value
                 for name, value in (query or {}).items() if value is not None}
        # openstacksdk ignores unknown parameters and lists everything.
        known = kind._query_mapping._mapping
        if unknown := sorted(query.keys() - known.keys()):
            raise exceptions.InvalidResourceQuery(
                f'Unknown query parameters of {kind.__name__}: '
                f'{", ".join(unknown)}; known are {", ".join(sorted(known))}.')
        if max_items is not None:
            query.setdefault('limit', max_items)
        return itertools.islice(self._list(kind, **query), max_items)

    def _single(self, kind: type[ResourceT], **query: Any) -> ResourceT:
        return self._get_resource(kind, None).fetch(self, **query)

    def _named(self, kind: type[ResourceT], name_or_id: str,
               ignore_missing: bool) -> ResourceT | None:
        # openstacksdk deprecates ignore_missing=True.
        try:
            return self._find(kind, name_or_id, ignore_missing=False)
        except exceptions.NotFoundException:
            if ignore_missing:
                return None
            raise

    def _show(self, kind: type[ResourceT],
              value: resource.Resource | str | None) -> ResourceT:
        # Not _get(), whose message hides that of the service.
        if value is not None:
            value = resource.Resource._get_id(value)
        return self._get_resource(kind, value).fetch(self)

    def _change(self, kind: type[ResourceT], value: resource.Resource | str,
                values: Mapping[str, Any]) -> ResourceT:
        # By id, so that all values are sent, changed or not.
        value = resource.Resource._get_id(value)
        return self._get_resource(kind, value, **values).commit(self)

    def _wait(self, kind: type[ResourceT], value: resource.Resource | str,
              status: str, over: set[str], interval: float, wait: float | None,
              attribute: str = 'status') -> ResourceT:
        return resource.wait_for_status(
            self, self._show(kind, value), status, sorted(over - {status}),
            interval, wait, attribute=attribute)
