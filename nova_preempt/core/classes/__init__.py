# SPDX-License-Identifier: Apache-2.0
"""Classes of service: the order of requests, their victims, and their cores.
"""
