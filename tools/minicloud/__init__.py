# SPDX-License-Identifier: Apache-2.0
"""A small OpenStack of real services on 127.0.0.1, for tests and for people.

Keystone, Glance, Placement and Nova with our scheduler, engine and API (two
of each that may be several), fake computes and a stub of the network API.
``python -m minicloud --help`` has the commands, ``make cloud-up`` the usual
one.
"""
