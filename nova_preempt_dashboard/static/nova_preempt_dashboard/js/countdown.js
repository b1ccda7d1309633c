/* SPDX-License-Identifier: Apache-2.0 */
/* Counts down to the times of elements of the class preempt-countdown. */
(function () {
  'use strict';

  function text(seconds) {
    if (seconds <= 0) {
      return '0 s';
    }
    var minutes = Math.floor(seconds / 60);
    return (minutes ? minutes + ' min ' : '') + (seconds % 60) + ' s';
  }

  function tick() {
    var found = document.querySelectorAll('time.preempt-countdown');
    Array.prototype.forEach.call(found, function (element) {
      var left = new Date(element.getAttribute('datetime')) - new Date();
      element.textContent = text(Math.ceil(left / 1000));
    });
  }

  document.addEventListener('DOMContentLoaded', function () {
    tick();
    window.setInterval(tick, 1000);
  });
}());
