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
"""The database of nova_preempt: intents, decision records, hinted servers."""

# So that all models are there, whoever asks for one.
from nova_preempt.db import backlog_models  # noqa: F401 (see above)
from nova_preempt.db.database import Database
from nova_preempt.db.decisions import Decisions
from nova_preempt.db.rows import Decision
from nova_preempt.db.rows import Victim

__all__ = ('Database', 'Decision', 'Decisions', 'Victim')
