# SPDX-License-Identifier: Apache-2.0
"""Doubles of the vendors, over HTTPS or HTTP: they check every request as the vendor's documents say, keep what came, break on
demand (`Fault`), and make the vendor's signed callbacks. They share nothing with the product.

    double = Double("postmark", folder).start()      # folder: where the certificate goes; None: plain HTTP
    double.base_url, double.ca_file                  # for the credential's base_url and the program's certificates
    double.secret, double.key_id, double.settings    # of the credential that the double takes
    double.behave(Fault.CUT_AFTER_BODY, times=1)
    mail = double.wait(1)[0]                         # Mail: to, subject, html, text, headers, tags, key, id ...
    callback = double.callback(mail, "delivered")    # headers and body, signed; double.callback_key is what the console shows
"""
from tests.harness.vendor_doubles.callbacks import Callback
from tests.harness.vendor_doubles.server import Double, Fault, VENDORS
from tests.harness.vendor_doubles.wire import Mail

__all__ = ["Callback", "Double", "Fault", "Mail", "VENDORS"]
