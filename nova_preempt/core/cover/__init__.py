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

"""The exact search behind ``victims``: a covering problem on integers.

Given items, each a key (a positive integer to be minimised in sum) and a
row (what the item frees of each missing class), find the subset with the
least sum of keys that frees at least the need in every class. This package
knows nothing of servers or hosts; use ``nova_preempt.core.victims``.
"""
