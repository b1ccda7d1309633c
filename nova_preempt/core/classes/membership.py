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

"""Of which class a server is."""

from __future__ import annotations

from collections.abc import Collection


def class_of(by_flavor: str, by_request: str, known: Collection[str]) -> str:
    """Return the name of the class of a preemptible server, '' for none.

    That of its flavor; of a flavor that names none that there is, that of the
    request that it was booted for; of a request that does not either, none.

    :param by_flavor: what the flavor names, '' for none
    :param by_request: the same of the request, '' too where there is none
    :param known: the classes that there are
    """
    for name in (by_flavor, by_request):
        if name in known:
            return name
    return ""
