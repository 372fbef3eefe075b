package elicitation_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/callgate/callgate/gateway/elicitation"
)

// secret stands in what tools say and must not stand in what operators read.
const secret = "hunter2"

// field is a form with one field.
func field(definition string) string {
	return `{"message":"` + secret + `","requestedSchema":{"type":"object","properties":{"` + secret + `":` + definition + `}}}`
}

// given is what the caller is given of a form with one field.
func given(definition string) string {
	return `{"mode":"form","message":"` + secret + `","requestedSchema":{"type":"object","properties":{"` + secret + `":` + definition + `}}}`
}

func form(schema string) string {
	return `{"message":"` + secret + `","requestedSchema":` + schema + `}`
}

func visit(address string) string {
	return `{"mode":"url","message":"Go","url":"` + address + `"}`
}

func sample(members string) string {
	return `{"messages":[{"role":"user","content":{"type":"text","text":"Hi"}}],"maxTokens":10` + members + `}`
}

func message(content string) string {
	return `{"messages":[{"role":"user","content":` + content + `}],"maxTokens":10}`
}

// many is a list of n things.
func many(n int, format string) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf(format, i))
	}
	return strings.Join(list, ",")
}

type asking struct {
	why, kind, params string
	want              string // what the caller is given; empty where it cannot be asked
}

// askings are questions of every kind, and what makes one unusable.
var askings = []asking{
	{"a text", "form", field(`{"type":"string"}`), given(`{"type":"string"}`)},
	{"a text with all", "form", field(`{"type":"string","title":"T","description":"D","format":"email","minLength":1,"maxLength":9,"default":"a@b.c"}`),
		given(`{"type":"string","title":"T","description":"D","format":"email","minLength":1,"maxLength":9,"default":"a@b.c"}`)},
	{"a number", "form", field(`{"type":"number","minimum":-1e3,"maximum":0.10,"default":0.05}`), given(`{"type":"number","minimum":-1e3,"maximum":0.10,"default":0.05}`)},
	{"a big integer", "form", field(`{"type":"integer","maximum":123456789012345678901234567890}`), given(`{"type":"integer","maximum":123456789012345678901234567890}`)},
	{"a flag", "form", field(`{"type":"boolean","default":false}`), given(`{"type":"boolean","default":false}`)},
	{"a choice", "form", field(`{"type":"string","enum":["a","b"],"default":"b"}`), given(`{"type":"string","enum":["a","b"],"default":"b"}`)},
	{"a choice with names", "form", field(`{"type":"string","enum":["a","b"],"enumNames":["A\u200b","B"]}`), given(`{"type":"string","enum":["a","b"],"enumNames":["A\\u200b","B"]}`)},
	{"a choice with titles", "form", field(`{"type":"string","oneOf":[{"title":"A","const":"a"}]}`), given(`{"type":"string","oneOf":[{"const":"a","title":"A"}]}`)},
	{"choices", "form", field(`{"type":"array","items":{"type":"string","enum":["a","b"]},"minItems":1,"maxItems":2,"default":["a"]}`),
		given(`{"type":"array","items":{"type":"string","enum":["a","b"]},"minItems":1,"maxItems":2,"default":["a"]}`)},
	{"choices with titles", "form", field(`{"type":"array","items":{"anyOf":[{"const":"a","title":"A"}]}}`), given(`{"type":"array","items":{"anyOf":[{"const":"a","title":"A"}]}}`)},
	{"the order of fields stays", "form", form(`{"type":"object","properties":{"z":{"type":"boolean"},"a":{"type":"boolean"}},"required":["z","a"]}`),
		`{"mode":"form","message":"` + secret + `","requestedSchema":{"type":"object","properties":{"z":{"type":"boolean"},"a":{"type":"boolean"}},"required":["z","a"]}}`},
	{"no fields", "form", form(`{"type":"object","properties":{}}`), `{"mode":"form","message":"` + secret + `","requestedSchema":{"type":"object","properties":{}}}`},
	{"what generators add", "form", form(`{"$schema":"https://json-schema.org/draft/2020-12/schema","title":"T","description":"D","additionalProperties":false,"type":"object","properties":{}}`),
		`{"mode":"form","message":"` + secret + `","requestedSchema":{"type":"object","properties":{}}}`},
	{"_meta is not passed on", "form", `{"_meta":{"a":1},"mode":"form","message":"M","requestedSchema":{"type":"object","properties":{}}}`,
		`{"mode":"form","message":"M","requestedSchema":{"type":"object","properties":{}}}`},
	{"nothing hides in texts", "form", "{\"message\":\"a\u202eb\u200bc\U000E0041\",\"requestedSchema\":{\"type\":\"object\",\"properties\":{\"f\":{\"type\":\"string\",\"title\":\"\u2066t\",\"description\":\"d\u00ad\"}}}}",
		`{"mode":"form","message":"a\\u202eb\\u200bc\\udb40\\udc41","requestedSchema":{"type":"object","properties":{"f":{"type":"string","title":"\\u2066t","description":"d\\u00ad"}}}}`},

	{"no message", "form", `{"requestedSchema":{"type":"object","properties":{}}}`, ""},
	{"a message of spaces", "form", `{"message":" ","requestedSchema":{"type":"object","properties":{}}}`, ""},
	{"a message that is none", "form", `{"message":["hunter2"],"requestedSchema":{"type":"object","properties":{}}}`, ""},
	{"no schema", "form", `{"message":"hunter2"}`, ""},
	{"another mode", "form", `{"mode":"url","message":"hunter2","requestedSchema":{"type":"object","properties":{}}}`, ""},
	{"an unknown member", "form", `{"message":"m","hunter2":1,"requestedSchema":{"type":"object","properties":{}}}`, ""},
	{"a member in another case", "form", `{"message":"m","Message":"hunter2","requestedSchema":{"type":"object","properties":{}}}`, ""},
	{"_meta that is no object", "form", `{"_meta":"hunter2","message":"m","requestedSchema":{"type":"object","properties":{}}}`, ""},
	{"a member twice", "form", `{"message":"m","message":"hunter2","requestedSchema":{"type":"object","properties":{}}}`, ""},
	{"no object", "form", `["hunter2"]`, ""},
	{"no JSON", "form", `hunter2`, ""},
	{"nothing", "form", ``, ""},
	{"something after it", "form", `{"message":"m","requestedSchema":{"type":"object","properties":{}}} hunter2`, ""},
	{"invalid UTF-8", "form", "{\"message\":\"hunter2\xff\",\"requestedSchema\":{\"type\":\"object\",\"properties\":{}}}", ""},
	{"a lone surrogate", "form", `{"message":"hunter2\ud800","requestedSchema":{"type":"object","properties":{}}}`, ""},
	{"nested without end", "form", `{"message":"m","requestedSchema":` + strings.Repeat(`{"a":`, 40) + `1` + strings.Repeat(`}`, 40) + `}`, ""},
	{"too long", "form", `{"message":"` + strings.Repeat("a", 130<<10) + `","requestedSchema":{"type":"object","properties":{}}}`, ""},
	{"too long once nothing hides", "form", `{"message":"` + strings.Repeat("\u200b", 40<<10) + `","requestedSchema":{"type":"object","properties":{}}}`, ""},
	{"a schema of a list", "form", form(`{"type":"array","items":{}}`), ""},
	{"a schema that is none", "form", form(`true`), ""},
	{"no properties", "form", form(`{"type":"object"}`), ""},
	{"fields that are a list", "form", form(`{"type":"object","properties":[]}`), ""},
	{"more fields than it names", "form", form(`{"type":"object","properties":{},"additionalProperties":true}`), ""},
	{"a pattern of fields", "form", form(`{"type":"object","properties":{},"patternProperties":{"hunter2":{"type":"string"}}}`), ""},
	{"definitions", "form", form(`{"type":"object","properties":{},"$defs":{"hunter2":{}}}`), ""},
	{"branches", "form", form(`{"type":"object","properties":{},"allOf":[{}]}`), ""},
	{"requires what is not there", "form", form(`{"type":"object","properties":{},"required":["hunter2"]}`), ""},
	{"requires twice", "form", form(`{"type":"object","properties":{"a":{"type":"string"}},"required":["a","a"]}`), ""},
	{"requires a number", "form", form(`{"type":"object","properties":{},"required":[1]}`), ""},
	{"a field that is no object", "form", field(`"hunter2"`), ""},
	{"a field without a name", "form", form(`{"type":"object","properties":{"":{"type":"string"}}}`), ""},
	{"a field whose name hides", "form", form("{\"type\":\"object\",\"properties\":{\"hunter2\u200b\":{\"type\":\"string\"}}}"), ""},
	{"too many fields", "form", form(`{"type":"object","properties":{` + many(65, `"f%d":{"type":"string"}`) + `}}`), ""},
	{"a field without a type", "form", field(`{}`), ""},
	{"a field of null", "form", field(`{"type":"null"}`), ""},
	{"a field of an object", "form", field(`{"type":"object","properties":{}}`), ""},
	{"a field of two types", "form", field(`{"type":["string","null"]}`), ""},
	{"a field by reference", "form", field(`{"$ref":"#/hunter2"}`), ""},
	{"a field of branches", "form", field(`{"anyOf":[{"type":"string"},{"type":"null"}]}`), ""},
	{"a pattern", "form", field(`{"type":"string","pattern":"(a+)+$"}`), ""},
	{"another format", "form", field(`{"type":"string","format":"regex"}`), ""},
	{"a length below none", "form", field(`{"type":"string","minLength":-1}`), ""},
	{"a length with a fraction", "form", field(`{"type":"string","minLength":1.5}`), ""},
	{"a length beyond all", "form", field(`{"type":"string","maxLength":1e300}`), ""},
	{"lengths that nothing is between", "form", field(`{"type":"string","minLength":2,"maxLength":1}`), ""},
	{"a default of another type", "form", field(`{"type":"string","default":1}`), ""},
	{"a default that hides", "form", field("{\"type\":\"string\",\"default\":\"\u202e\"}"), ""},
	{"a default of no mail", "form", field(`{"type":"string","format":"email","default":"hunter2"}`), ""},
	{"a default too long", "form", field(`{"type":"string","maxLength":1,"default":"hunter2"}`), ""},
	{"a default too short", "form", field(`{"type":"string","minLength":8,"default":"hunter2"}`), ""},
	{"a default too high", "form", field(`{"type":"number","maximum":1,"default":1.0000000000000000000001}`), ""},
	{"a default too low", "form", field(`{"type":"integer","minimum":1,"default":-0}`), ""},
	{"default choices too many", "form", field(`{"type":"array","items":{"type":"string","enum":["a","b"]},"maxItems":1,"default":["a","b"]}`), ""},
	{"default choices too few", "form", field(`{"type":"array","items":{"type":"string","enum":["a","b"]},"minItems":1,"default":[]}`), ""},
	{"a default beside a field that must be filled in", "form", form(`{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"integer","minimum":1,"default":1}},"required":["z","a"]}`),
		`{"mode":"form","message":"` + secret + `","requestedSchema":{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"integer","minimum":1,"default":1}},"required":["z","a"]}}`},
	{"numbers that nothing is between", "form", field(`{"type":"number","minimum":1,"maximum":0.99}`), ""},
	{"a bound that is a text", "form", field(`{"type":"number","minimum":"0"}`), ""},
	{"an exclusive bound", "form", field(`{"type":"number","exclusiveMinimum":0}`), ""},
	{"a default with a fraction", "form", field(`{"type":"integer","default":0.5}`), ""},
	{"a number beyond all", "form", field(`{"type":"number","maximum":1e999999999}`), ""},
	{"a flag that is a text", "form", field(`{"type":"boolean","default":"true"}`), ""},
	{"nothing to choose", "form", field(`{"type":"string","enum":[]}`), ""},
	{"a choice of numbers", "form", field(`{"type":"string","enum":[1]}`), ""},
	{"a choice twice", "form", field(`{"type":"string","enum":["a","a"]}`), ""},
	{"a choice that hides", "form", field("{\"type\":\"string\",\"enum\":[\"a\",\"a\u200b\"]}"), ""},
	{"two ways to choose", "form", field(`{"type":"string","enum":["a"],"oneOf":[{"const":"a","title":"A"}]}`), ""},
	{"names for others", "form", field(`{"type":"string","enum":["a"],"enumNames":["A","B"]}`), ""},
	{"names of titles", "form", field(`{"type":"string","oneOf":[{"const":"a","title":"A"}],"enumNames":["A"]}`), ""},
	{"a title without a value", "form", field(`{"type":"string","oneOf":[{"title":"A"}]}`), ""},
	{"a value without a title", "form", field(`{"type":"string","oneOf":[{"const":"a"}]}`), ""},
	{"a value with more", "form", field(`{"type":"string","oneOf":[{"const":"a","title":"A","hunter2":1}]}`), ""},
	{"a default that is no choice", "form", field(`{"type":"string","enum":["a"],"default":"hunter2"}`), ""},
	{"too many choices", "form", field(`{"type":"string","enum":[` + many(257, `"%d"`) + `]}`), ""},
	{"choices of nothing", "form", field(`{"type":"array"}`), ""},
	{"choices without a type", "form", field(`{"type":"array","items":{"enum":["a"]}}`), ""},
	{"choices of texts", "form", field(`{"type":"array","items":{"type":"string"}}`), ""},
	{"choices of numbers", "form", field(`{"type":"array","items":{"type":"integer","enum":["1"]}}`), ""},
	{"choices with a stranger", "form", field(`{"type":"array","items":{"type":"string","enum":["a"]},"uniqueItems":true}`), ""},
	{"default choices of others", "form", field(`{"type":"array","items":{"type":"string","enum":["a"]},"default":["hunter2"]}`), ""},

	{"an address", "url", visit("https://example.com/a?b=c#d"), visit("https://example.com/a?b=c#d")},
	{"an id of older revisions", "url", `{"mode":"url","message":"Go","url":"https://example.com/","elicitationId":"x"}`, visit("https://example.com/")},
	{"this machine", "url", visit("http://127.0.0.1:8080/x"), ""},
	{"this machine by name", "url", visit("http://localhost/x"), ""},
	{"this machine, version 6", "url", visit("http://[::1]:80/x"), ""},
	{"an address of version 4", "url", visit("https://192.0.2.1:8443/"), ""},
	{"a name with numbers", "url", visit("https://1.2.example4.com./"), ""},
	{"a name like a number", "url", visit("https://0x7f.0xg/"), visit("https://0x7f.0xg/")},
	{"an address in one number", "url", visit("https://2130706433/hunter2"), ""},
	{"an address of too few parts", "url", visit("https://127.1/hunter2"), ""},
	{"an address in base 8", "url", visit("https://0177.0.0.1/hunter2"), ""},
	{"an address in base 16", "url", visit("https://192.0.2.0X7F/hunter2"), ""},
	{"an address with a number of nothing", "url", visit("https://192.0.2.0x/hunter2"), ""},
	{"an address with a dot behind it", "url", visit("https://192.0.2.1./hunter2"), ""},
	{"an address of too many parts", "url", visit("https://example.192.0.2.1/hunter2"), ""},
	{"an address beyond all", "url", visit("https://256.1.1.1/hunter2"), ""},
	{"a plain address", "url", visit("http://example.com/hunter2"), ""},
	{"a name like this machine's", "url", visit("http://localhost.example.com/hunter2"), ""},
	{"a scheme that runs", "url", visit("javascript:alert(1)"), ""},
	{"a scheme of data", "url", visit("data:text/html,hunter2"), ""},
	{"a scheme of files", "url", visit("file:///etc/hunter2"), ""},
	{"no scheme", "url", visit("//example.com/"), ""},
	{"no host", "url", visit("https:///hunter2"), ""},
	{"no slashes", "url", visit("https:example.com"), ""},
	{"a user", "url", visit("https://example.com@hunter2.example/"), ""},
	{"an empty user", "url", visit("https://@example.com/"), ""},
	{"a backslash", "url", `{"mode":"url","message":"Go","url":"https://example.com\\@hunter2.example/"}`, ""},
	{"a space", "url", visit("https://example.com/ hunter2"), ""},
	{"the end of a line", "url", visit(`https://example.com/\nhunter2`), ""},
	{"letters beyond ASCII", "url", visit("https://ex\u0430mple.com/"), ""},
	{"what hides", "url", visit("https://example.com/\u202e"), ""},
	{"an escape in the host", "url", visit("https://example%2ecom/"), ""},
	{"a port that is none", "url", visit("https://example.com:99999/"), ""},
	{"an empty port", "url", visit("https://example.com:/"), ""},
	{"a zone", "url", visit("https://[fe80::1%25eth0]/"), ""},
	{"an address too long", "url", visit("https://example.com/" + strings.Repeat("a", 2048)), ""},
	{"an address without a message", "url", `{"mode":"url","url":"https://example.com/"}`, ""},
	{"an address without a mode", "url", `{"message":"Go","url":"https://example.com/"}`, ""},
	{"an address and a form", "url", `{"mode":"url","message":"Go","url":"https://example.com/","requestedSchema":{}}`, ""},

	{"a message", "sampling", sample(""), `{"messages":[{"role":"user","content":{"type":"text","text":"Hi"}}],"maxTokens":10}`},
	{"a message with all", "sampling", sample(`,"includeContext":"none","systemPrompt":"s\u200b","temperature":0.70,"stopSequences":["\n\n"],"metadata":{"n":1.00},"modelPreferences":{"hints":[{"name":"m\u200b"},{}],"costPriority":1,"speedPriority":0,"intelligencePriority":0.5}`),
		`{"messages":[{"role":"user","content":{"type":"text","text":"Hi"}}],"maxTokens":10,"systemPrompt":"s\\u200b","temperature":0.70,"stopSequences":["\n\n"],"metadata":{"n":1.00},"modelPreferences":{"hints":[{"name":"m\\u200b"},{}],"costPriority":1,"speedPriority":0,"intelligencePriority":0.5}}`},
	{"what hides in a message", "sampling", message("{\"type\":\"text\",\"text\":\"a\U000E0041\",\"_meta\":{}}"), `{"messages":[{"role":"user","content":{"type":"text","text":"a\\udb40\\udc41"}}],"maxTokens":10}`},
	{"an image and a sound", "sampling", message(`[{"type":"image","data":"AAAA","mimeType":"image/png"},{"type":"audio","data":"AA==","mimeType":"audio/wav","annotations":{"audience":["user"],"priority":0.5,"lastModified":"2025-01-12"}}]`),
		`{"messages":[{"role":"user","content":[{"type":"image","data":"AAAA","mimeType":"image/png"},{"type":"audio","data":"AA==","mimeType":"audio/wav","annotations":{"audience":["user"],"priority":0.5,"lastModified":"2025-01-12"}}]}],"maxTokens":10}`},
	{"tools", "sampling", sample(`,"tools":[]`), ""},
	{"a choice of tools", "sampling", sample(`,"toolChoice":{"mode":"auto"}`), ""},
	{"what others said", "sampling", sample(`,"includeContext":"allServers"`), ""},
	{"an unknown part of it", "sampling", sample(`,"hunter2":1`), ""},
	{"no tokens", "sampling", `{"messages":[{"role":"user","content":{"type":"text","text":"Hi"}}]}`, ""},
	{"tokens below one", "sampling", `{"messages":[{"role":"user","content":{"type":"text","text":"Hi"}}],"maxTokens":0}`, ""},
	{"tokens in parts", "sampling", `{"messages":[{"role":"user","content":{"type":"text","text":"Hi"}}],"maxTokens":1.5}`, ""},
	{"no messages", "sampling", `{"messages":[],"maxTokens":1}`, ""},
	{"too many messages", "sampling", `{"messages":[` + many(65, `{"role":"user","content":{"type":"text","text":"%d"}}`) + `],"maxTokens":1}`, ""},
	{"a message of the system's", "sampling", `{"messages":[{"role":"system","content":{"type":"text","text":"hunter2"}}],"maxTokens":1}`, ""},
	{"a message without content", "sampling", `{"messages":[{"role":"user"}],"maxTokens":1}`, ""},
	{"a message with more", "sampling", `{"messages":[{"role":"user","content":{"type":"text","text":"a"},"hunter2":1}],"maxTokens":1}`, ""},
	{"the use of a tool", "sampling", message(`{"type":"tool_use","id":"1","name":"hunter2","input":{}}`), ""},
	{"the result of a tool", "sampling", message(`{"type":"tool_result","toolUseId":"1","content":[]}`), ""},
	{"a link", "sampling", message(`{"type":"resource_link","uri":"https://hunter2/"}`), ""},
	{"data that is none", "sampling", message(`{"type":"image","data":"hunter2!","mimeType":"image/png"}`), ""},
	{"data with the end of a line", "sampling", message(`{"type":"image","data":"AA\nAA","mimeType":"image/png"}`), ""},
	{"an image that is a page", "sampling", message(`{"type":"image","data":"AAAA","mimeType":"text/html"}`), ""},
	{"a text with data", "sampling", message(`{"type":"text","text":"a","data":"hunter2"}`), ""},
	{"notes with more", "sampling", message(`{"type":"text","text":"a","annotations":{"hunter2":1}}`), ""},
	{"notes for others", "sampling", message(`{"type":"text","text":"a","annotations":{"audience":["hunter2"]}}`), ""},
	{"a heat below none", "sampling", sample(`,"temperature":-1`), ""},
	{"an end that is empty", "sampling", sample(`,"stopSequences":[""]`), ""},
	{"an end that hides", "sampling", sample(`,"stopSequences":["\u200b"]`), ""},
	{"too many ends", "sampling", sample(`,"stopSequences":[` + many(17, `"%d"`) + `]`), ""},
	{"metadata that is none", "sampling", sample(`,"metadata":"hunter2"`), ""},
	{"preferences with more", "sampling", sample(`,"modelPreferences":{"hunter2":1}`), ""},
	{"preferences above one", "sampling", sample(`,"modelPreferences":{"costPriority":1.01}`), ""},
	{"hints with more", "sampling", sample(`,"modelPreferences":{"hints":[{"hunter2":1}]}`), ""},

	{"folders", "roots", `{}`, `{}`},
	{"folders with _meta", "roots", `{"_meta":{"hunter2":1}}`, `{}`},
	{"folders with more", "roots", `{"hunter2":1}`, ""},
	{"folders of a list", "roots", `[]`, ""},

	{"no kind", "", `{}`, ""},
	{"another kind", "tasks", `{}`, ""},
}

var methods = map[string]string{
	"form": "elicitation/create", "url": "elicitation/create", "sampling": "sampling/createMessage", "roots": "roots/list",
}

// TestQuestions: what a caller is given of a question, which questions cannot be asked,
// and that why says nothing in the tool's words.
func TestQuestions(t *testing.T) {
	others := protocol(t)
	for _, c := range askings {
		t.Run(c.why, func(t *testing.T) {
			q, err := elicitation.Read("name", c.kind, methods[c.kind], []byte(c.params))
			if c.want == "" {
				if err == nil {
					t.Fatalf("it can be asked: %s", q.Params())
				}
				if strings.Contains(err.Error(), secret) {
					t.Errorf("the operator reads %q", err)
				}
				return
			}
			if err != nil || string(q.Params()) != c.want {
				t.Fatalf("got %s, %v\nexpected %s", q.Params(), err, c.want)
			}
			second, err := elicitation.Read("name", c.kind, methods[c.kind], q.Params())
			if err != nil || string(second.Params()) != c.want {
				t.Errorf("read again: %s, %v", second.Params(), err)
			}
			if err := ofProtocol(others, c.kind, q.Params()); err != nil {
				t.Errorf("not of the protocol: %v", err)
			}
		})
	}
}

// TestNames: an answer must be able to name its question, and the method must be of
// the kind.
func TestNames(t *testing.T) {
	for _, name := range []string{"", strings.Repeat("a", 129), "a\u200b", "a\x00", "a\x1b[2J"} {
		if _, err := elicitation.Read(name, "roots", "roots/list", []byte(`{}`)); err == nil {
			t.Errorf("%q can be asked", name)
		}
	}
	for _, method := range []string{"", "elicitation/create", "ping", "Roots/list"} {
		if _, err := elicitation.Read("a", "roots", method, []byte(`{}`)); err == nil {
			t.Errorf("roots can be asked by %q", method)
		}
	}
	if _, err := elicitation.Read("a/b~c ü", "roots", "roots/list", []byte(`{}`)); err != nil {
		t.Error(err)
	}
}
