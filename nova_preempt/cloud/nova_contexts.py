# SPDX-License-Identifier: Apache-2.0

"""Makes Nova's request contexts."""

from nova import context as nova_context
from nova import rpc as nova_rpc

admin = nova_context.get_admin_context


def of_request(environ, is_admin):
    """Make the context of a WSGI request from keystonemiddleware's headers."""
    return nova_context.RequestContext.from_environ(environ, is_admin=is_admin)


def serializer():
    """Make the oslo.messaging serializer that sends contexts with calls."""
    return nova_rpc.RequestContextSerializer(None)
