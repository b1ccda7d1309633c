/* SPDX-License-Identifier: Apache-2.0 */
/* Goes on reading the rows of our tables that Horizon updates.

   Horizon stops at the first error, and so would show "it starts now" for ever
   if the API was away for a moment. */
(function () {
  'use strict';

  $(document).ajaxError(function (_event, answer, request) {
    // A row that is gone, or a user who is signed out, does not come back.
    if (answer.status >= 400 && answer.status < 500) {
      return;
    }
    $('table#reservations tr.warning').filter(function () {
      return $(this).attr('data-update-url') === request.url;
    }).addClass('ajax-update');
  });
}());
