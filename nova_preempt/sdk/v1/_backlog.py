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
        """Iterate over BacklogRequests, newest first.

        :param max_items: as of preemptions
        :param query: status, user_id; for administrators project_id,
            all_projects=True
        :raises InvalidResourceQuery: another parameter is given
        """
        return self._all(_backlog.BacklogRequest, max_items, query)

    def get_backlog_request(self, request: _backlog.BacklogRequest | str
                            ) -> _backlog.BacklogRequest:
        """A BacklogRequest with its history.

        :param request: id, or BacklogRequest
        """
        return self._show(_backlog.BacklogRequest, request)

    def find_backlog_request(self, name_or_id: str, ignore_missing: bool = True
                             ) -> _backlog.BacklogRequest | None:
        """A BacklogRequest of the project; None if there is none.

        :param ignore_missing: return None instead of raising NotFoundException
        :raises DuplicateResource: there are several of the name
        """
        return self._named(_backlog.BacklogRequest, name_or_id, ignore_missing)

    def create_backlog_request(self, **values: Any) -> _backlog.BacklogRequest:
        """Create a request for servers; return the BacklogRequest.

        :param values: body (of Nova's POST /servers), compute_version,
            flavors (ids, in order of preference), count, least_count (or a
            ladder in place of these three), name, class_name, priorities,
            not_before, not_after, longest_wait_s, comes_back, back_until,
            most_returns
        :raises ForbiddenException: the project has too many, or no trust can
            be made of the token
        """
        return self._create(_backlog.BacklogRequest, **values)

    def update_backlog_request(self, request: _backlog.BacklogRequest | str,
                               **values: Any) -> _backlog.BacklogRequest:
        """The changed BacklogRequest.

        :param values: those of the above that are neither body, version nor
            flavors; counts only while no server was started
        """
        return self._change(_backlog.BacklogRequest, request, values)

    def cancel_backlog_request(self, request: _backlog.BacklogRequest | str, *,
                               servers: bool = False,
                               ignore_missing: bool = True) -> None:
        """Cancel a request.

        :param servers: whether its servers are deleted as well
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
        """The BacklogRequest when it has this status.

        As wait_for_preemption.
        """
        return self._wait(_backlog.BacklogRequest, request, status, _OVER,
                          interval, wait)

    def get_backlog_statistics(self, **query: Any
                               ) -> _backlog.BacklogStatistics:
        """BacklogStatistics.

        :param query: hours, for which waits count; 24 by default
        """
        return self._single(_backlog.BacklogStatistics, **query)

    def get_backlog_report(self, **query: Any) -> _backlog.BacklogReport:
        """A BacklogReport.

        :param query: since, until; the last week by default
        """
        return self._single(_backlog.BacklogReport, **query)

    def get_backlog_plan(self) -> _backlog.BacklogPlan:
        """Return a BacklogPlan of requests to start (administrators)."""
        return self._single(_backlog.BacklogPlan)

    def backlog_classes(self) -> Iterator[_backlog.BacklogClass]:
        """Iterate over BacklogClasses, the most important first."""
        return self._all(_backlog.BacklogClass)
