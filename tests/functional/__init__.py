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
"""Functional tests, each on a cloud of its own."""

# Before anything of Nova: up to 2026.1 it prepares the process for eventlet.
import nova_preempt.embedded.cloud  # noqa: F401

# isort: split
import selectors
import socketserver

# 2025.2 has imported it by then, with a selector that stops all greenthreads.
socketserver._ServerSelector = selectors.DefaultSelector
