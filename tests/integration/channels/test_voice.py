# SPDX-License-Identifier: Apache-2.0
"""Voice: a script that a vendor reads out. From POST /v1/notifications to `delivered`, or to the voicemail that took the call; what the vendor
says about a call is signed by code that is not ours."""
import json
import urllib.parse

import pytest
from cryptography.hazmat.primitives import serialization

from tests.harness import phone
from tests.harness.pipeline import TENANT
from tests.harness.processes import wait_until
from tests.harness.vendor_doubles import Callback, Fault, voice
from tests.integration.operating.test_audit import audit, counts, moment
from tests.integration.sending.test_sms import World

WORDS = "Guten Tag {{name}}, Ihr Code ist <b>4711</b> & nicht mehr. {{{more}}}"


@pytest.fixture(scope="module")
def world():
    made = World(channel="voice")
    try:
        words = made.pipeline.folder / "call.txt"
        words.write_text(WORDS)
        made.cli("template", "put", "code", "--channel", "voice", "--locale", "de", "--text", words)
        made.twilio = made.vendor("twilio_voice")
        yield made
    finally:
        made.close()


def test_a_call_is_made_and_answered(world):
    notification = world.sent(to="+4915112345670")
    call = world.twilio.mails[-1]
    assert call.text == "Guten Tag Alice, Ihr Code ist <b>4711</b> & nicht mehr. ", "markup is read out as it stands"
    assert (call.tags["language"], call.sender, call.headers["Timeout"]) == ("de-DE", "+15005550008", "30")
    assert call.report_to.startswith(f"{world.public_url}/v1/inbound/{TENANT}/twilio_voice/")
    attempt = world.attempt(notification, "sent").attempt
    assert (attempt.vendor, attempt.vendor_message_id) == ("twilio_voice", call.id)
    world.reported(world.twilio, call, "delivered")
    shown = world.pipeline.status(notification, wait="delivered")
    assert (shown["status"], shown.get("reason_code")) == ("delivered", None)


def test_a_machine_took_the_call(world):
    notification = world.sent()
    world.reported(world.twilio, world.twilio.mails[-1], "voicemail")
    shown = world.pipeline.status(notification, wait="delivered")
    assert (shown["status"], shown["reason_code"]) == ("delivered", "voicemail"), shown


def test_a_report_that_twilios_own_library_signed_is_taken(world):
    phone.installed()
    notification = world.sent()
    call = world.twilio.mails[-1]
    form = voice.twilio_ended(call, "delivered")
    signature = phone.twilio(world.twilio.secret, call.report_to, form)
    made = Callback({"Content-Type": "application/x-www-form-urlencoded", "X-Twilio-Signature": signature}, urllib.parse.urlencode(form).encode())
    forged = Callback(made.headers, made.body.replace(b"human", b"machine_start"))
    assert forged.body != made.body and world.call(call.report_to, forged)[0] == 401
    assert world.call(call.report_to, made)[0] == 200
    assert world.pipeline.status(notification, wait="delivered")["status"] == "delivered"


def calls_to(world, number):
    return [call for call in list(world.twilio.mails) if call.to == [number]]


def test_who_is_busy_is_called_again_and_who_answered_is_not(world):
    since = moment()
    numbers = [world.number() for _ in range(3)]
    answered, busy, never = (world.sent(to=number) for number in numbers)
    first = [calls_to(world, number)[0] for number in numbers]
    world.reported(world.twilio, first[0], "delivered")
    assert world.report(world.twilio, first[1], "busy")[0] == 200
    assert world.report(world.twilio, first[2], "busy")[0] == 200
    for notification in (busy, never):
        world.routing.wait_rows(notification, (1, "twilio_voice", "deferred", 0))
        assert world.pipeline.status(notification)["status"] in ("sent", "sending"), "it is no end"
    assert world.report(world.twilio, first[1], "busy")[0] == 200, "a repeat changes nothing"

    wait_until(lambda: len(calls_to(world, numbers[1])) == len(calls_to(world, numbers[2])) == 2, 40, "the second calls")
    again = calls_to(world, numbers[1])[1]
    assert again.text == first[1].text and again.report_to != first[1].report_to
    world.routing.wait_rows(busy, (1, "twilio_voice", "deferred", 0), (2, "twilio_voice", "sent", 0))
    world.reported(world.twilio, again, "voicemail")
    shown = world.pipeline.status(busy, wait="delivered")
    assert (shown["status"], shown["reason_code"]) == ("delivered", "voicemail"), shown

    assert world.report(world.twilio, calls_to(world, numbers[2])[1], "no_answer")[0] == 200
    wait_until(lambda: len(calls_to(world, numbers[2])) == 3, 40, "the third call")
    world.routing.wait_rows(never, (1, "twilio_voice", "deferred", 0), (2, "twilio_voice", "deferred", 0), (3, "twilio_voice", "sent", 0))
    waiting = world.attempt(never, "sending")
    assert (waiting.reason_code, waiting.attempt.outcome) == ("no_answer", world.routing.types.OUTCOME_REJECTED_RETRYABLE)
    assert world.report(world.twilio, calls_to(world, numbers[2])[2], "no_answer")[0] == 200
    shown = world.pipeline.status(never, wait="failed")
    assert (shown["status"], shown["reason_code"]) == ("failed", "no_answer"), shown

    # By now the next calls of those that were answered were due.
    assert world.routing.rows(answered) == [(1, "twilio_voice", "sent", 0)] and len(calls_to(world, numbers[0])) == 1
    assert len(calls_to(world, numbers[1])) == 2 and world.pipeline.status(answered)["status"] == "delivered"
    wait_until(lambda: audit(world.pipeline, "--since", since)["in_flight"] == 0, 40, "the next calls' time being over")
    assert counts(audit(world.pipeline, "--since", since)) == {"accepted": 3, "sent": 3}, "nothing is lost, and no call was made twice"


def test_a_number_that_is_none_is_suppressed(world):
    number = world.number()
    notification = world.sent(to=number)
    world.reported(world.twilio, world.twilio.mails[-1], "bounced")
    assert world.pipeline.status(notification, wait="bounced")["status"] == "bounced"
    wait_until(lambda: "invalid_address" in world.cli("suppress", "list", "--channel", "voice"), 20, "the suppression of the number")
    assert world.pipeline.status(world.accepted(to=number), wait="suppressed")["status"] == "suppressed"
    refused = world.number()
    world.twilio.rejected.add(refused)
    shown = world.pipeline.status(world.accepted(to=refused), wait="failed")
    assert "21211" in json.dumps(shown["attempts"][-1]), shown


def test_a_script_that_is_too_long_is_refused_with_its_length(world):
    notification = world.accepted(variables={"name": "Alice", "more": "x" * 4100})
    shown = world.pipeline.status(notification, wait="failed")
    assert "characters (an emoji counts two), and twilio_voice takes at most 4000" in json.dumps(shown), shown


def test_a_report_settles_a_call_whose_answer_never_came(world):
    world.twilio.behave(Fault.HANG_AFTER_BODY, times=1)
    before = len(world.twilio.mails)
    notification = world.accepted()
    call = world.twilio.wait(before + 1)[-1]
    world.routing.wait_rows(notification, (1, "twilio_voice", "deferred", 1))
    world.reported(world.twilio, call, "delivered")
    world.routing.wait_rows(notification, (1, "twilio_voice", "sent", 1))
    assert world.pipeline.status(notification, wait="delivered")["status"] == "delivered"
    assert len(world.twilio.mails) == before + 1, "a recipient is called once"


def test_vonage_calls_where_its_route_says(world):
    """From here on there are two vendors."""
    vonage = world.vonage = world.vendor("vonage_voice")
    world.cli("route", "put", "austria", "--channel", "voice", "--country", "AT", "--vendor", "vonage_voice")

    def calls():
        before = len(vonage.mails)
        world.sent(to="+43664" + world.number()[-7:])
        return len(vonage.mails) > before
    wait_until(calls, 40, "numbers of Austria taking their route")
    notification = world.sent(to="+436641234567")
    call = vonage.mails[-1]
    assert call.to == ["+436641234567"] and call.text.startswith("Guten Tag Alice, Ihr Code ist <b>4711</b> & nicht mehr.")
    assert (call.tags["language"], call.sender) == ("de-DE", "+447700900001")
    assert world.attempt(notification, "sent").attempt.vendor_message_id == call.id
    wait_until(lambda: world.report(vonage, call, "sent")[0] == 200, 20, "the event 'started' being taken")
    unsigned = Callback({"Content-Type": "application/json"}, voice.vonage_event(call, "voicemail"))
    assert world.call(call.report_to, unsigned)[0] == 503, "Vonage signs it when it sends it again"
    made = vonage.callback(call, "voicemail")
    assert world.call(call.report_to, Callback(made.headers, made.body.replace(b"machine", b"human")))[0] == 401
    assert world.call(call.report_to, made)[0] == 200
    assert world.report(vonage, call, "completed")[0] == 200
    shown = world.pipeline.status(notification, wait="delivered")
    assert (shown["status"], shown["reason_code"]) == ("delivered", "voicemail"), shown


def test_vonages_tokens_are_those_of_its_own_libraries(world):
    """By the package with which @vonage/jwt signs and checks."""
    phone.installed()
    notification = world.sent(to="+436641234568")
    call = world.vonage.mails[-1]
    public = serialization.load_pem_private_key(world.vonage.secret.encode(), None).public_key()
    pem = public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo).decode()
    claims = phone.verified(pem, call.request.headers["authorization"].removeprefix("Bearer "))
    assert claims["application_id"] == world.vonage.key_id and claims["exp"] - claims["iat"] == 300
    body = voice.vonage_event(call, "delivered")
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {phone.vonage(world.vonage.signer.key, body)}"}
    assert world.call(call.report_to, Callback(headers, body + b" "))[0] == 401
    assert world.call(call.report_to, Callback(headers, body))[0] == 200
    assert world.pipeline.status(notification, wait="delivered")["status"] == "delivered"
