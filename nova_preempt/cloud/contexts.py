# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Nova's contexts of requests: who asks for something."""

from nova import context as nova_context
from nova import rpc as nova_rpc

admin = nova_context.get_admin_context


def of_request(environ, is_admin):
    """Make the context of a WSGI request from what keystonemiddleware says."""
    return nova_context.RequestContext.from_environ(environ,
                                                    is_admin=is_admin)


def serializer():
    """Has oslo.messaging send contexts along with calls."""
    return nova_rpc.RequestContextSerializer(None)
