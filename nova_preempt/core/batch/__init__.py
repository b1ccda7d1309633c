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
"""Placement of many requests together.

What waits is placed at once, so that the first does not take what another
needs more: by minimum-cost flow as in ECSched (Y. Hu, H. Zhou, C. de Laat and
Z. Zhao, Euro-Par 2018, doi 10.1007/978-3-319-96983-1_26; FGCS 2020, doi
10.1016/j.future.2019.08.025), or exactly by an integer program.

``model`` has the nouns, ``choice.make()`` what places. Only what ``choice``
loads imports numpy and scipy.
"""
