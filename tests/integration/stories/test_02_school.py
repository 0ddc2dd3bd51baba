# SPDX-License-Identifier: Apache-2.0
"""Story 2, a school (document B): readers' languages, quiet hours over midnight, digests, guardians, texts that a machine drafted."""
import json
from datetime import timedelta
from zoneinfo import ZoneInfo

from tests.harness.pipeline import TENANT
from tests.harness.processes import HOME, wait_until
from tests.harness.stories import new_address, now, stamp, story, text_of

DIGEST = HOME / "deploy" / "local" / "platform" / "digest.json"  # put by `stentor up`
GRADE = {"fa-AF": ("نمره {{subject}}: {{grade}}", "{{date on 'long'}}"), "en-US": ("{{subject}}: grade {{grade}}", "{{date on 'long'}}")}


class School:
    def __init__(self, user):
        self.user = user

    def member(self, name, *words):
        """A recipient with an identity of the school's own; (id, address)."""
        address = new_address(name)
        return self.user.run("recipient", "put", "--identity", f"user:{name}", "--name", name.title(), "--email", address, *words)["id"], address

    def grade(self, recipient, subject, expected="queued", **fields):
        variables = {"subject": subject, "grade": 18, "on": "2026-11-26"}
        return self.user.send(expected, recipient_id=recipient, template="grade", variables=variables, **fields)


def languages(school):
    """B69, capability 10c: ps-AF -> fa-AF -> en-US, right to left, the reader's calendar."""
    user, (student, address) = school.user, school.member("laila", "--locale", "ps-AF", "--time-zone", "Asia/Kabul")
    school.grade(student, "ریاضی")
    mail = user.mail(address)
    assert mail["Subject"] == "نمره ریاضی: 18" and "قوس" in text_of(mail), "the month of the Dari calendar"
    assert 'dir="rtl"' in mail.get_body(("html",)).get_content()


def an_hour_before_midnight():
    """A zone where it is now between 22 and 23 o'clock, and when it will be seven there."""
    zone = next(name for name in (f"Etc/GMT{hours:+}" for hours in range(-14, 13)) if now().astimezone(ZoneInfo(name)).hour == 22)
    there = now().astimezone(ZoneInfo(zone))
    return zone, (there + timedelta(days=1)).replace(hour=7, minute=0, second=0, microsecond=0)


def quiet_hours(school):
    """B48, B49, B73: put off to their end in the reader's zone, over midnight; urgent and security mails are not."""
    user, (zone, end) = school.user, an_hour_before_midnight()
    reader, address = school.member("night-owl", "--time-zone", zone, "--quiet-hours", "22:00-07:00")
    waiting = school.grade(reader, "History", "scheduled")
    row, = wait_until(lambda: user.waiting("--recipient", reader), 20, "what waits")
    assert (row["id"], row["reason"], row["due_at"][:19]) == (waiting, "quiet", stamp(end)[:19])
    for fields in ({"priority": "urgent"}, {"priority": "critical"}, {"category": "security"}):
        user.status(school.grade(reader, "Fire drill", **fields), wait="sent")
    assert len(user.mails(address)) == 3 and user.status(waiting)["reason_code"] == "quiet_hours"


def digest(school):
    """B72, B08, findings 13 and 14: one mail in the reader's language with each subject, found from its items and the other way round."""
    user, (reader, address) = school.user, school.member("karim", "--locale", "fa-AF", "--time-zone", "Asia/Kabul")
    later = now(hours=12).astimezone(ZoneInfo("Asia/Kabul"))
    user.run("recipient", "prefs", reader, "--set", f"academic=daily@{later:%H:%M}")
    items = [school.grade(reader, subject, "scheduled") for subject in ("ریاضی", "هنر")]
    rows = wait_until(lambda: (lambda rows: len(rows) == 2 and rows)(user.waiting("--recipient", reader, "--reason", "digest")), 20, "two items")
    assert {row["id"] for row in rows} == set(items) and len({row["digest_window_id"] for row in rows}) == 1
    assert {row["due_at"][:16] for row in rows} == {stamp(later)[:16]} and user.mails(address) == []
    user.run("recipient", "prefs", reader, "--set", "academic=immediate")  # wants them now
    mail = user.mail(address)
    assert mail["Subject"] == "۲ اعلان برای شما"
    lines = [line.partition(" (")[0] for line in mail.get_body(("plain",)).get_content().splitlines() if line.startswith("- ")]
    assert lines == ["- نمره ریاضی: 18", "- نمره هنر: 18"]
    taken = [user.status(item, wait="superseded") for item in items]
    assert {(row["status"], row["reason_code"]) for row in taken} == {("superseded", "digest")}
    sent, = {row["taken_up_by"] for row in taken}
    assert sent in mail["Message-ID"] and user.status(sent, wait="sent")["takes_up"] == sorted(items)


def guardians(school):
    """B29, B74, finding 14: a guardian gets a copy that is linked with the original, or the mail instead."""
    user, (guardian, guardians_address) = school.user, school.member("farid")
    minor, address = school.member("sara", "--minor", "--guardian", guardian, "--guardian-routing", "copy")
    original = school.grade(minor, "Biology")
    assert user.mail(address)["Subject"] == user.mail(guardians_address)["Subject"] == "Biology: grade 18"
    copy, = wait_until(lambda: user.status(original)["copies"], 20, "the copy in the original's status")
    assert user.status(copy)["copy_of"] == original and copy in user.mail(guardians_address)["Message-ID"]
    younger, address = school.member("omid", "--minor", "--guardian", guardian, "--guardian-routing", "redirect")
    school.grade(younger, "Chemistry")
    wait_until(lambda: "Chemistry: grade 18" in [mail["Subject"] for mail in user.mails(guardians_address)], 20, "the redirected mail")
    assert user.mails(address) == []


def drafted_by_a_machine(user):
    """C34, capability 12d."""
    path = user.pipeline.folder / "drafted.json"
    path.write_text(json.dumps({"key": "drafted", "source": "ai_drafted", "locales": [{"locale": "en-US", "subject": "Hello", "text": "Hello"}]}))
    status, words = user.refused("template", "put", "drafted", "--from", path)
    assert status == 2 and "approved_by" in words.replace("--approved-by", "approved_by"), words
    user.run("template", "put", "drafted", "--from", path, "--approved-by", "head teacher")


def test_a_school():
    with story("digest-flusher") as user:
        user.pipeline.cli("tenant", "put", TENANT, "--locale", "en-US")
        user.pipeline.cli("template", "put", "digest", "--from", DIGEST, tenant="platform")
        user.template("grade", GRADE, category="academic", fallback_locales=["fa-AF", "en-US"])
        user.settle()
        school = School(user)
        languages(school)
        quiet_hours(school)
        digest(school)
        guardians(school)
        drafted_by_a_machine(user)
