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

"""What has been taken for a request, and what could not be."""

import dataclasses


@dataclasses.dataclass
class Taken:
    """Of one pass.

    :ivar claims: db.Decisions that took victims
    :ivar decisions: uuids of all of them, claimed or not
    :ivar lost: uuids of those that may be claimed, or not
    :ivar free: uuids of servers that needed no victims
    :ivar conflicts: how many claims failed: somebody else was faster, or
        Placement did not answer
    """

    claims: list = dataclasses.field(default_factory=list)
    decisions: list = dataclasses.field(default_factory=list)
    lost: list = dataclasses.field(default_factory=list)
    free: list = dataclasses.field(default_factory=list)
    conflicts: int = 0
