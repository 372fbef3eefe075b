package elicitation_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/callgate/callgate/gateway/elicitation"
)

const contact = `{"message":"M","requestedSchema":{"type":"object","required":["mail"],"properties":{` +
	`"mail":{"type":"string","format":"email","maxLength":20},"site":{"type":"string","format":"uri"},"day":{"type":"string","format":"date"},"at":{"type":"string","format":"date-time"},` +
	`"age":{"type":"integer","minimum":0,"maximum":150},"big":{"type":"integer"},"share":{"type":"number","maximum":1},"ok":{"type":"boolean"},` +
	`"one":{"type":"string","enum":["a","b"],"enumNames":["A","B"]},"titled":{"type":"string","oneOf":[{"const":"x","title":"X"}]},` +
	`"many":{"type":"array","items":{"anyOf":[{"const":"p","title":"P"},{"const":"q","title":"Q"}]},"minItems":1,"maxItems":2}}}}`

type answering struct {
	why, kind, answer string
	sent              string // what the tool is given; empty where the answer has faults
	faults            []string
}

// accepted is the acceptance of a form.
func accepted(content string) string { return `{"action":"accept","content":` + content + `}` }

// answerings are answers of every kind to the questions of asked, and what is wrong
// with one.
var answerings = []answering{
	{"accepted", "form", accepted(`{"mail":"a@b.example"}`), accepted(`{"mail":"a@b.example"}`), nil},
	{"all fields", "form", accepted(`{"age":150,"at":"2026-01-02T03:04:05Z","day":"2026-01-02","mail":"a@b.example","many":["p","q"],"ok":true,"one":"b","site":"https://x.example/","titled":"x"}`),
		accepted(`{"age":150,"at":"2026-01-02T03:04:05Z","day":"2026-01-02","mail":"a@b.example","many":["p","q"],"ok":true,"one":"b","site":"https://x.example/","titled":"x"}`), nil},
	{"numbers stay as written", "form", accepted(`{"big":123456789012345678901234567890,"mail":"a@b.example"}`), accepted(`{"big":123456789012345678901234567890,"mail":"a@b.example"}`), nil},
	{"declined", "form", `{"action":"decline"}`, `{"action":"decline"}`, nil},
	{"cancelled", "form", `{"_meta":{"a":1},"action":"cancel"}`, `{"action":"cancel"}`, nil},
	{"no action", "form", `{}`, "", []string{"missing_argument /action"}},
	{"another action", "form", `{"action":"approve"}`, "", []string{"invalid_value /action"}},
	{"an action in another case", "form", `{"action":"Accept","content":{"mail":"a@b.example"}}`, "", []string{"unexpected_argument /content", "invalid_value /action"}},
	{"an action that is none", "form", `{"action":true}`, "", []string{"wrong_type /action"}},
	{"accepted without content", "form", `{"action":"accept"}`, "", []string{"missing_argument /content"}},
	{"content of null", "form", accepted(`null`), "", []string{"wrong_type /content"}},
	{"content that is a list", "form", accepted(`[]`), "", []string{"wrong_type /content"}},
	{"content of a refusal", "form", `{"action":"decline","content":{"mail":"a@b.example"}}`, "", []string{"unexpected_argument /content"}},
	{"a field is missing", "form", accepted(`{}`), "", []string{"missing_argument /content/mail"}},
	{"a field too many", "form", accepted(`{"mail":"a@b.example","admin":true}`), "", []string{"unexpected_argument /content/admin"}},
	{"a prototype", "form", accepted(`{"mail":"a@b.example","__proto__":{}}`), "", []string{"unexpected_argument /content/__proto__"}},
	{"_meta among the fields", "form", accepted(`{"mail":"a@b.example","_meta":{}}`), "", []string{"unexpected_argument /content/_meta"}},
	{"a field of another type", "form", accepted(`{"mail":7}`), "", []string{"wrong_type /content/mail"}},
	{"no mail", "form", accepted(`{"mail":"hunter2"}`), "", []string{"invalid_value /content/mail"}},
	{"too long", "form", accepted(`{"mail":"aaaaaaaaaaaaaaaaaaaaa@b.example"}`), "", []string{"invalid_value /content/mail"}},
	{"no address", "form", accepted(`{"mail":"a@b.example","site":"not one"}`), "", []string{"invalid_value /content/site"}},
	{"no day", "form", accepted(`{"mail":"a@b.example","day":"2026-02-30"}`), "", []string{"invalid_value /content/day"}},
	{"no time", "form", accepted(`{"mail":"a@b.example","at":"2026-01-02"}`), "", []string{"invalid_value /content/at"}},
	{"too old", "form", accepted(`{"mail":"a@b.example","age":151}`), "", []string{"invalid_value /content/age"}},
	{"an age with a fraction", "form", accepted(`{"mail":"a@b.example","age":1.5}`), "", []string{"wrong_type /content/age"}},
	{"an age of text", "form", accepted(`{"mail":"a@b.example","age":"1"}`), "", []string{"wrong_type /content/age"}},
	{"more than all", "form", accepted(`{"mail":"a@b.example","share":1.0000000000000000000001}`), "", []string{"invalid_value /content/share"}},
	{"a flag of text", "form", accepted(`{"mail":"a@b.example","ok":"true"}`), "", []string{"wrong_type /content/ok"}},
	{"no choice", "form", accepted(`{"mail":"a@b.example","one":"c"}`), "", []string{"invalid_value /content/one"}},
	{"the name of a choice", "form", accepted(`{"mail":"a@b.example","one":"A"}`), "", []string{"invalid_value /content/one"}},
	{"the title of a choice", "form", accepted(`{"mail":"a@b.example","titled":"X"}`), "", []string{"invalid_value /content/titled"}},
	{"too few", "form", accepted(`{"mail":"a@b.example","many":[]}`), "", []string{"invalid_value /content/many"}},
	{"one of them is none", "form", accepted(`{"mail":"a@b.example","many":["p","z"]}`), "", []string{"invalid_value /content/many/1"}},
	{"a list instead of one", "form", accepted(`{"mail":["a@b.example"]}`), "", []string{"wrong_type /content/mail"}},
	{"an answer of null", "form", `null`, "", []string{"wrong_type "}},
	{"an answer that is a number", "form", `12345`, "", []string{"wrong_type "}},
	{"an answer that is no JSON", "form", `{"action":accept}`, "", []string{"invalid_value "}},
	{"two answers", "form", `{"action":"decline"}{"action":"accept"}`, "", []string{"invalid_value "}},
	{"an answer twice in one", "form", `{"action":"decline","action":"accept"}`, "", []string{"invalid_value "}},
	{"an answer without end", "form", accepted(strings.Repeat(`{"a":`, 64) + `1` + strings.Repeat(`}`, 64)), "", []string{"invalid_value "}},
	{"an answer too long", "form", accepted(`{"mail":"` + strings.Repeat("a", 2<<20) + `"}`), "", []string{"invalid_value "}},
	{"_meta that is no object", "form", `{"action":"decline","_meta":1}`, "", []string{"wrong_type /_meta"}},
	{"an unknown member", "form", `{"action":"decline","why":"no"}`, "", []string{"unexpected_argument /why"}},
	{"an answer to another kind", "form", `{"roots":[]}`, "", []string{"unexpected_argument /roots", "missing_argument /action"}},

	{"visited", "url", `{"action":"accept"}`, `{"action":"accept"}`, nil},
	{"not visited", "url", ` { "action" : "cancel" } `, `{"action":"cancel"}`, nil},
	{"visited with content", "url", `{"action":"accept","content":{}}`, "", []string{"unexpected_argument /content"}},

	{"a message", "sampling", `{"role":"assistant","content":{"type":"text","text":"Hi <b> \u200b"},"model":"m","stopReason":"endTurn"}`,
		"{\"role\":\"assistant\",\"content\":{\"type\":\"text\",\"text\":\"Hi <b> \u200b\"},\"model\":\"m\",\"stopReason\":\"endTurn\"}", nil},
	{"a list without its _meta", "sampling", `{"_meta":{},"model":"m","content":[{"type":"text","text":"","_meta":{"a":1}},{"type":"image","data":"AAAA","mimeType":"image/png"}],"role":"assistant"}`,
		`{"role":"assistant","content":[{"type":"text","text":""},{"type":"image","data":"AAAA","mimeType":"image/png"}],"model":"m"}`, nil},
	{"a message of a user's", "sampling", `{"role":"user","content":{"type":"text","text":"a"},"model":"m"}`, "", []string{"invalid_value /role"}},
	{"a message of nobody's", "sampling", `{"content":{"type":"text","text":"a"},"model":"m"}`, "", []string{"missing_argument /role"}},
	{"a message without content", "sampling", `{"role":"assistant","model":"m"}`, "", []string{"missing_argument /content"}},
	{"a message of text", "sampling", `{"role":"assistant","content":"a","model":"m"}`, "", []string{"wrong_type /content"}},
	{"an empty list", "sampling", `{"role":"assistant","content":[],"model":"m"}`, "", []string{"invalid_value /content"}},
	{"a message of no model", "sampling", `{"role":"assistant","content":{"type":"text","text":"a"}}`, "", []string{"missing_argument /model"}},
	{"a model without a name", "sampling", `{"role":"assistant","content":{"type":"text","text":"a"},"model":""}`, "", []string{"invalid_value /model"}},
	{"the use of a tool", "sampling", `{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"tool_use","id":"1","name":"t","input":{}}],"model":"m","stopReason":"toolUse"}`, "", []string{"invalid_value /content/1/type"}},
	{"a part without a type", "sampling", `{"role":"assistant","content":{"text":"a"},"model":"m"}`, "", []string{"missing_argument /content/type"}},
	{"a part with more", "sampling", `{"role":"assistant","content":{"type":"text","text":"a","data":"AAAA"},"model":"m"}`, "", []string{"unexpected_argument /content/data"}},
	{"an image without data", "sampling", `{"role":"assistant","content":{"type":"image","mimeType":"image/png"},"model":"m"}`, "", []string{"missing_argument /content/data"}},
	{"data that is none", "sampling", `{"role":"assistant","content":{"type":"image","data":"@","mimeType":"audio/wav"},"model":"m"}`, "", []string{"invalid_value /content/data", "invalid_value /content/mimeType"}},
	{"a reason that is none", "sampling", `{"role":"assistant","content":{"type":"text","text":"a"},"model":"m","stopReason":null}`, "", []string{"wrong_type /stopReason"}},
	{"a message with more", "sampling", `{"role":"assistant","content":{"type":"text","text":"a"},"model":"m","usage":{}}`, "", []string{"unexpected_argument /usage"}},

	{"folders", "roots", `{"roots":[{"uri":"file:///srv/a%20b","name":"A","_meta":{}},{"uri":"file:///"}]}`, `{"roots":[{"uri":"file:///srv/a%20b","name":"A"},{"uri":"file:///"}]}`, nil},
	{"no folders", "roots", `{"roots":[]}`, `{"roots":[]}`, nil},
	{"folders are missing", "roots", `{}`, "", []string{"missing_argument /roots"}},
	{"folders of null", "roots", `{"roots":null}`, "", []string{"wrong_type /roots"}},
	{"a folder of text", "roots", `{"roots":["file:///srv"]}`, "", []string{"wrong_type /roots/0"}},
	{"a folder without a place", "roots", `{"roots":[{"name":"a"}]}`, "", []string{"missing_argument /roots/0/uri"}},
	{"a folder with more", "roots", `{"roots":[{"uri":"file:///srv","path":"/"}]}`, "", []string{"unexpected_argument /roots/0/path"}},
	{"a name that is none", "roots", `{"roots":[{"uri":"file:///srv","name":1}]}`, "", []string{"wrong_type /roots/0/name"}},
	{"another scheme", "roots", `{"roots":[{"uri":"file:///srv"},{"uri":"https://example.com/"}]}`, "", []string{"invalid_value /roots/1/uri"}},
	{"too many folders", "roots", `{"roots":[` + many(65, `{"uri":"file:///%d"}`) + `]}`, "", []string{"invalid_value /roots"}},
}

// question are the questions that answerings answer.
func question(t testing.TB, kind string) elicitation.Question {
	t.Helper()
	params := map[string]string{"form": contact, "url": visit("https://example.com/"), "sampling": sample(""), "roots": "{}"}[kind]
	q, err := elicitation.Read("name", kind, methods[kind], []byte(params))
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func faultTexts(faults []elicitation.Fault) (list []string) {
	for _, f := range faults {
		path := ""
		for _, token := range f.Path {
			path += "/" + token
		}
		list = append(list, fmt.Sprintf("%s %s", f.Code, path))
	}
	return list
}

// TestAnswers: what a tool is given of an answer, and what is wrong with one.
func TestAnswers(t *testing.T) {
	others := protocol(t)
	for _, c := range answerings {
		t.Run(c.why, func(t *testing.T) {
			q := question(t, c.kind)
			a, faults := q.Validate([]byte(c.answer))
			if got := faultTexts(faults); string(a.JSON) != c.sent || !slices.Equal(got, c.faults) {
				t.Fatalf("sent %s, faults %q\nexpected %s, %q", a.JSON, got, c.sent, c.faults)
			}
			for _, f := range faults {
				if !strings.HasSuffix(f.Message, ".") && !strings.HasSuffix(f.Message, "?") || strings.Contains(f.Message, secret) || len(f.Message) > 1000 {
					t.Errorf("says %q", f.Message)
				}
			}
			if c.sent == "" {
				return
			}
			second, faults := q.Validate(a.JSON)
			if len(faults) > 0 || string(second.JSON) != c.sent {
				t.Errorf("judged again: %s, %q", second.JSON, faultTexts(faults))
			}
			if err := others.Check(answers[c.kind], a.JSON); err != nil {
				t.Errorf("not of the protocol: %v", err)
			}
		})
	}
}

// TestNoQuestion: nothing answers a question that was never read.
func TestNoQuestion(t *testing.T) {
	for _, answer := range []string{`{"action":"accept"}`, `{"roots":[]}`, `{}`} {
		if a, faults := (elicitation.Question{}).Validate([]byte(answer)); len(faults) == 0 {
			t.Errorf("%s is sent as %s", answer, a.JSON)
		}
	}
}

// TestFolders: of a URI every reader finds the same path, or it is no folder.
func TestFolders(t *testing.T) {
	q := question(t, "roots")
	for uri, path := range map[string]string{
		"file:///":                               "/",
		"file:///srv/acme":                       "/srv/acme",
		"file:///srv/a%20b":                      "/srv/a b",
		"file:///srv/%C3%BC":                     "/srv/ü",
		"file:///srv/%2e%2e/x":                   "/srv/../x", // whether that is within is judged beside
		"file:///srv/a%25b":                      "/srv/a%b",
		"file:///srv/~":                          "/srv/~",
		"file:///srv/a:b@c":                      "/srv/a:b@c",
		"file:srv":                               "",
		"file:/srv":                              "",
		"file://srv":                             "",
		"file://localhost/srv":                   "",
		"file://evil.example/x":                  "",
		"file:////evil/share":                    "",
		"FILE:///srv":                            "",
		" file:///srv":                           "",
		"file:///srv ":                           "",
		"file:///srv?x":                          "",
		"file:///srv#x":                          "",
		"file:///srv%2fetc":                      "",
		"file:///srv%2Fetc":                      "",
		"file:///srv%5cetc":                      "",
		"file:///srv%00":                         "",
		"file:///srv%":                           "",
		"file:///srv%zz":                         "",
		"file:///srv/%ff":                        "",
		"file:///srv/ü":                          "",
		`file:///srv\\..\\etc`:                   "",
		"file:///srv/\u202ex":                    "",
		"file:///{a}":                            "",
		"https://example.com/":                   "",
		"":                                       "",
		"/srv":                                   "",
		"file:///" + strings.Repeat("a", 3*4096): "",
	} {
		a, faults := q.Validate([]byte(`{"roots":[{"uri":"` + uri + `"}]}`))
		if path == "" {
			if len(faults) == 0 {
				t.Errorf("%q names %q", uri, a.Paths)
			}
			continue
		}
		if len(faults) > 0 || !slices.Equal(a.Paths, []string{path}) {
			t.Errorf("%q names %q, expected %q: %v", uri, a.Paths, path, faultTexts(faults))
		}
	}
}
