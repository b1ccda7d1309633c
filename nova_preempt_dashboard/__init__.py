# SPDX-License-Identifier: Apache-2.0
"""A plugin of Horizon for preemptible servers, reservations and the backlog.

The modules api, host_kinds, notices, paging, periods and timeline do not need
Django.
"""
