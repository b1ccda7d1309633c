# SPDX-License-Identifier: Apache-2.0

"""Methods of "conn.preemption" about waiting requests."""

from collections.abc import Iterator
from typing import Any

from openstack import exceptions

from nova_preempt.sdk.v1 import _base
from nova_preempt.sdk.v1 import backlog as _backlog

# Final statuses.
_OVER = {'done', 'failed', 'cancelled', 'expired'}


class BacklogMixin(_base.Proxy):
    """The methods of _proxy.Proxy about waiting requests."""

    def backlog_requests(self, *, max_items: int | None = None, **query: Any
                         ) -> Iterator[_backlog.BacklogRequest]:
        """Return a generator of waiting requests, newest first.

        :param max_items: the most items in total
        :param query: status, user_id; for administrators project_id,
            all_projects=True
        :returns: a generator of BacklogRequest
        :raises InvalidResourceQuery: query has another parameter
        """
        return self._all(_backlog.BacklogRequest, max_items, query)

    def get_backlog_request(self, request: _backlog.BacklogRequest | str
                            ) -> _backlog.BacklogRequest:
        """Get a waiting request with its history.

        :param request: id of the request
        :returns: one BacklogRequest
        :raises NotFoundException: there is none of this id
        """
        return self._show(_backlog.BacklogRequest, request)

    def find_backlog_request(self, name_or_id: str, ignore_missing: bool = True
                             ) -> _backlog.BacklogRequest | None:
        """Find a waiting request of the project.

        :param name_or_id: name or id of the request
        :param ignore_missing: return None instead of raising NotFoundException
        :returns: one BacklogRequest, or None
        :raises DuplicateResource: several requests have the name
        """
        return self._named(_backlog.BacklogRequest, name_or_id, ignore_missing)

    def create_backlog_request(self, **values: Any) -> _backlog.BacklogRequest:
        """Create a request for servers that waits for capacity.

        :param values: body (of Nova's POST /servers), compute_version,
            flavors (ids, in order of preference), count, least_count (or a
            ladder in place of these three), name, class_name, priorities,
            not_before, not_after, longest_wait_s, comes_back, back_until,
            most_returns
        :returns: the new BacklogRequest
        :raises ForbiddenException: the project has too many requests, or the
            token does not allow the creation of a trust
        """
        return self._create(_backlog.BacklogRequest, **values)

    def update_backlog_request(self, request: _backlog.BacklogRequest | str,
                               **values: Any) -> _backlog.BacklogRequest:
        """Update a waiting request.

        :param request: id of the request
        :param values: as for create_backlog_request, except body,
            compute_version, flavors and ladder; counts only before the first
            server was started
        :returns: the updated BacklogRequest
        """
        return self._change(_backlog.BacklogRequest, request, values)

    def cancel_backlog_request(self, request: _backlog.BacklogRequest | str, *,
                               servers: bool = False,
                               ignore_missing: bool = True) -> None:
        """Cancel a waiting request.

        :param request: id of the request
        :param servers: whether its servers are deleted, too
        :param ignore_missing: do not raise NotFoundException
        """
        try:
            self._get_resource(_backlog.BacklogRequest, request).cancel(
                self, servers)
        except exceptions.NotFoundException:
            if not ignore_missing:
                raise

    def wait_for_backlog_request(self, request: _backlog.BacklogRequest | str,
                                 status: str = 'active', *,
                                 interval: float = 10, wait: float | None = 600
                                 ) -> _backlog.BacklogRequest:
        """Wait until a request has a status; see wait_for_preemption.

        :returns: the BacklogRequest
        """
        return self._wait(_backlog.BacklogRequest, request, status, _OVER,
                          interval, wait)

    def get_backlog_statistics(self, **query: Any
                               ) -> _backlog.BacklogStatistics:
        """Get numbers of requests and the statistics of their waits.

        :param query: hours, the period of the waits; 24 by default
        :returns: one BacklogStatistics
        """
        return self._single(_backlog.BacklogStatistics, **query)

    def get_backlog_report(self, **query: Any) -> _backlog.BacklogReport:
        """Get run times of requests over time, by class.

        :param query: since and until, by default the last week
        :returns: one BacklogReport
        """
        return self._single(_backlog.BacklogReport, **query)

    def get_backlog_plan(self) -> _backlog.BacklogPlan:
        """Get the plan of the next pass over requests, as administrator.

        :returns: one BacklogPlan
        """
        return self._single(_backlog.BacklogPlan)

    def backlog_classes(self) -> Iterator[_backlog.BacklogClass]:
        """Return a generator of classes of service, most important first.

        :returns: a generator of BacklogClass
        """
        return self._all(_backlog.BacklogClass)
