# SPDX-License-Identifier: Apache-2.0
"""A plugin of Horizon for preemptible servers, reservations and the backlog.

Modules at the top that do not import Django can be imported without it: api,
notices, paging, periods and timeline.
"""
