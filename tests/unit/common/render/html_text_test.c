// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/render/html_text.h"

typedef struct Row {
    const char *html;
    const char *text;
} Row;

// clang-format off
static const Row rows[] = {
    {"", ""},
    {"plain", "plain\n"},
    {"<p>One\n  and   two</p><p>Three</p>", "One and two\n\nThree\n"},
    {"<html><head><title>No</title><style>p{}</style></head><body><p>Yes</p></body></html>", "Yes\n"},
    {"a<br>b<br/>c<br><br>d", "a\nb\nc\n\nd\n"},
    {"<h1>Order</h1>Text<h2>Part</h2>More", "Order\n\nText\n\nPart\n\nMore\n"},
    {"Go to <a href=\"https://x.test/a?b=1&amp;c=2\">your order</a> now.", "Go to your order (https://x.test/a?b=1&c=2) now.\n"},
    {"<a href='https://x.test'>https://x.test</a>", "https://x.test\n"},
    {"<a href=\"mailto:a@b.test\">a@b.test</a> <a href=\"tel:+49\">call</a>", "a@b.test call (+49)\n"},
    {"<a href=\"#top\">up</a><a href=\"javascript:x()\">no</a>", "upno\n"},
    {"<a href=\"https://x.test\"><img src=\"l.png\" alt=\"Logo\"></a>", "Logo (https://x.test)\n"},
    {"<a href=\"https://x.test\"><img src=\"l.png\"></a>", "https://x.test\n"},
    {"<ul><li>one</li><li>two<ul><li>in</li></ul></li></ul><p>end</p>", "- one\n- two\n  - in\n\nend\n"},
    {"List:<ol><li>a<li>b</ol>", "List:\n\n1. a\n2. b\n"},
    {"<table><tr><th>Item</th><th>Sum</th></tr><tr><td>Pen</td><td>2</td></tr></table>", "Item | Sum\nPen | 2\n"},
    {"<table><tr><td><p>One</p></td></tr><tr><td><div>Two</div></td></tr></table>", "One\n\nTwo\n"},
    {"a &lt;b&gt; &amp;&nbsp;&euro;&#8364;&#x20AC; &unknown; &;&", "a <b> & \xe2\x82\xac\xe2\x82\xac\xe2\x82\xac &unknown; &;&\n"},
    {"so&shy;ft&#8203;ly&#1;", "softly\xef\xbf\xbd\n"},
    {"<blockquote>said<br>so</blockquote>ok", "> said\n> so\n\nok\n"},
    {"<pre>a  b\n  c</pre>", "a  b\n  c\n"},
    {"x<hr>y", "x\n----------------------------------------\ny\n"},
    {"<div style=\"display:none\">no<div>no</div></div>yes<p hidden>no</p>", "yes\n"},
    {"<script>if (a < b) {}</script>x<!-- <p>no</p> -->y", "xy\n"},
    {"1 < 2 and <b>3</b> > 2", "1 < 2 and 3 > 2\n"},
    {"<p title=\"a > b\">c</p>", "c\n"},
    {"<p>never closed <a href=\"https://x.test\">link", "never closed link (https://x.test)\n"},
    {"cut <p", "cut\n"},
    {"<!-- never closed <p>x", ""},
    {"<b>a</b> <i>b</i>", "a b\n"},
    {"<div><div>a</div></div><div>b</div>", "a\nb\n"},
};
// clang-format on

static void html_becomes_what_a_person_would_type(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Buf out;
        buf_init(&out, 10000);
        html_to_text(str_from(rows[i].html), &out);
        if (!str_eq(buf_view(&out), str_from(rows[i].text))) {
            fail_msg("%s\nexpected: [%s]\ngot:      [%s]", rows[i].html, rows[i].text, buf_c(&out));
        }
        buf_done(&out);
    }
}

static void a_text_that_does_not_fit_is_cut(void **state)
{
    (void)state;
    Buf out;
    buf_init(&out, 5);
    html_to_text(STR("<p>a</p><p>b</p><p>cdefgh</p>"), &out);
    assert_true(out.full);
    assert_true(str_starts(buf_view(&out), STR("a\n\nb")));
    buf_done(&out);
}

static void a_tag_is_found_where_it_is_one(void **state)
{
    (void)state;
    assert_int_equal(html_after_tag(STR("<html><BODY a='>'>x"), "body"), 18);
    assert_int_equal(html_after_tag(STR("<!-- <body> -->x"), "body"), -1);
    assert_int_equal(html_after_tag(STR("</body><bodyx>"), "body"), -1);
    assert_int_equal(html_after_tag(STR("<body"), "body"), -1);
    assert_int_equal(html_after_tag(STR(""), "body"), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(html_becomes_what_a_person_would_type),
        cmocka_unit_test(a_text_that_does_not_fit_is_cut),
        cmocka_unit_test(a_tag_is_found_where_it_is_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
