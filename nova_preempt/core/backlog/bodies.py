# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""What of the body of a server is nobody's business."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nova_preempt.core import masking

#: What may hold secrets. Nova shows it to the server itself alone.
SECRET = ("adminPass", "user_data", "personality")


def without_secrets(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return Nova's body of POST /servers with stars for what is secret."""
    server = body.get("server")
    if not isinstance(server, Mapping):
        return dict(body)
    return {
        **body,
        "server": {
            name: masking.MASK if name in SECRET else value
            for name, value in server.items()
        },
    }
