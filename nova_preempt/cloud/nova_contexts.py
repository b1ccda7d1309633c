# SPDX-License-Identifier: Apache-2.0

"""Nova's contexts of requests: who asks for something."""

from nova import context as nova_context
from nova import rpc as nova_rpc

admin = nova_context.get_admin_context


def of_request(environ, is_admin):
    """Make the context of a WSGI request from what keystonemiddleware says."""
    return nova_context.RequestContext.from_environ(environ, is_admin=is_admin)


def serializer():
    """Has oslo.messaging send contexts along with calls."""
    return nova_rpc.RequestContextSerializer(None)
