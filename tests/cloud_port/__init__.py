# SPDX-License-Identifier: Apache-2.0
"""Tests of the port to Nova and Placement, for two clouds.

``tests/unit/exploration/test_cloud_port.py`` runs them on the cloud in memory,
``tests/functional/test_cloud_port.py`` on Nova and Placement themselves. What
is the same there and here need not be explored on the real cloud.
"""
