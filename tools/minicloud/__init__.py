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
"""A small OpenStack of real services on 127.0.0.1, for tests and for people.

Keystone, Glance, Placement and Nova with our scheduler, engine and API (two
of each that may be several), fake computes and a stub of the network API.
``python -m minicloud --help`` has the commands, ``make cloud-up`` the usual
one.
"""
