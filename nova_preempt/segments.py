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
"""Ids and names as segments of URLs: the only place that quotes them.

Quoting alone is not enough: libraries resolve "." and "..", also as "%2E", and
Nova's collections have resources beside their members, such as
/flavors/detail.
"""

from __future__ import annotations

import urllib.parse

# No id of these can be asked for.
_OTHER = ("", ".", "..", "detail")


class NotASegment(ValueError):
    """The id or name would lead to another resource."""


def segment(name: str) -> str:
    """Return the id or name as it goes between two slashes of a URL.

    :raises NotASegment:
    """
    if name in _OTHER:
        raise NotASegment(f"{name!r} cannot be the name of anything.")
    return urllib.parse.quote(name, safe="")
