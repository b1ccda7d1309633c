# SPDX-License-Identifier: Apache-2.0
"""Imports the libraries, and then replaces clocks and threads."""

# What has clocks or threads of its own is imported before.
import concurrent.futures  # noqa: F401
import importlib
import logging
import os

import alembic.command  # noqa: F401
import jsonschema  # noqa: F401
import keystoneauth1.loading  # noqa: F401
from nova import objects
import nova.conf
import nova.scheduler.manager  # noqa: F401
import novaclient.client  # noqa: F401
import oslo_messaging  # noqa: F401
import prometheus_client  # noqa: F401
import sqlalchemy  # noqa: F401
import stevedore  # noqa: F401

from tests.exploration import substitutes


def prepare():
    """Have everything that is imported from now on live in virtual time."""
    objects.register_all()
    # As boot_schema does when it first checks a request.
    os.environ.setdefault('OS_NOVA_DISABLE_EVENTLET_PATCHING', 'true')
    for name in ('openstack.compute.schemas.servers',
                 'openstack.api_version_request', 'validation.validators'):
        importlib.import_module(f'nova.api.{name}')
    logging.disable(logging.CRITICAL)
    substitutes.install()
