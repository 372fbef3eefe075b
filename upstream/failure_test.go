package upstream

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestFailures reads the forms in which providers say why they failed.
func TestFailures(t *testing.T) {
	for in, want := range map[string]Failure{
		`{"error":{"message":"m","type":"t","param":"p","code":"c"}}`:   {"t", "c", "p", "m"},
		`{"error":{"message":"m","type":null,"param":null,"code":429}}`: {"", "429", "", "m"},
		`{"error":"m"}`:                         {Message: "m"},
		`{"message":"m","type":"t","code":"c"}`: {"t", "c", "", "m"},
		`{"error":{"message":{"a":1}}}`:         {},
		`{"a":1}`:                               {},
		`[]`:                                    {},
		`{"error":["m"]}`:                       {Message: "m"},
		`[{"error":{"code":400,"message":"m","status":"INVALID_ARGUMENT"}}]`:                 {Code: "400", Message: "m"},
		`{"detail":[{"type":"missing","loc":["body","messages",0],"msg":"Field required"}]}`: {"missing", "", "", "Field required (at body.messages.0)"},
		`{"detail":"m"}`: {Message: "m"},
		`{"object":"error","message":"m","type":"BadRequestError","param":null,"code":400}`: {"BadRequestError", "400", "", "m"},
		`{"type":"error","error":{"type":"t","message":"m"}}`:                               {Type: "t", Message: "m"},
		`{"error":"Bad Request","message":"m","statusCode":400}`:                            {Message: "m"},
		`{"error":"invalid_client","error_description":"m"}`:                                {Message: "m"},
		`{"success":false,"errors":[{"code":7009,"message":"m"}],"messages":[]}`:            {Code: "7009", Message: "m"},
		`{"title":"One or more faults.","errors":{"b":["x"],"a":["y","z"]}}`:                {Message: "a: y"},
		`{"error":{"message":"m","code":400,"metadata":{"raw":"why","provider_name":"X"}}}`: {Code: "400", Message: "m: why"},
		`{"error":{"message":"m","metadata":{"raw":{"a":1}}}}`:                              {Message: `m: {"a":1}`},
		`{"error":{"message":"m","code":"content_filter","innererror":{"code":"Policy"}}}`:  {Code: "content_filter", Message: "m (Policy)"},
		`{"error":true,"reason":"m"}`:                                                       {Message: "m"},
		`{"choices":null,"base_resp":{"status_code":1008,"status_msg":"m"}}`:                {Code: "1008", Message: "m"},
		`{"choices":[],"base_resp":{"status_code":0,"status_msg":"success"}}`:               {},
		`{"error_code":336003,"error_msg":"m"}`:                                             {Code: "336003", Message: "m"},
		`{"header":{"code":10013,"message":"m","sid":"s"}}`:                                 {Code: "10013", Message: "m"},
		`{"code":200,"msg":"success"}`:                                                      {},
		`{"code":"00000","message":"OK"}`:                                                   {},
		`{"error":{"code":0,"message":"m"}}`:                                                {Code: "0", Message: "m"},
		`{"code":0,"message":"Success","sid":"s"}`:                                          {},
		`{"code":0,"error":{"message":"m"}}`:                                                {Code: "0", Message: "m"},
		`{"error":{"message":"m"}`:                                                          {},
		`{"error":{"message":"m"}} x`:                                                       {},
		`{"error":{"message":"a","message":"b"}}`:                                           {},
		`<html>`: {},
		``:       {},
		`{"error":{"message":"` + strings.Repeat("ä", maxErrorMessage) + `"}}`: {Message: strings.Repeat("ä", maxErrorMessage/2)},
		`{"error":{"code":"` + strings.Repeat("x", 100) + `"}}`:                {Code: strings.Repeat("x", maxErrorWord)},
	} {
		if got := ReadFailure([]byte(in)); got != want {
			t.Errorf("%.80s: found %.80q", in, got)
		}
	}
}

// TestStatedFailure: an error that stands in an answer with the status 200 is the provider's own, with the status that
// its code names. Its words are kept back where they name the key, or speak of it.
func TestStatedFailure(t *testing.T) {
	route := routeTo(t, definition("http://127.0.0.1:1"))
	mentionsKey := func(text []byte) bool { return strings.Contains(string(text), "sk-test-key-1") }
	for said, want := range map[string]string{
		`{"error":{"message":"Too many requests.","code":429}}`:                                  "429 Too many requests.",
		`{"error":{"message":"Provider returned error","code":"503","metadata":{"raw":"busy"}}}`: "503 Provider returned error: busy",
		`{"error":{"message":"m","code":"overloaded"}}`:                                          "502 m",
		`{"error":{"message":"m","code":200}}`:                                                   "502 m",
		`{"error":{"message":"No such key.","code":401}}`:                                        "",
		`{"error":{"message":"for sk-test-key-1","code":429}}`:                                   "",
		`{"error":{"code":429}}`:                                                                 "",
	} {
		err := StatedFailure(route, ReadFailure([]byte(said)), mentionsKey)
		var s *StatusError
		if found := errors.As(err, &s); found != (want != "") || found && fmt.Sprint(s.Status, " ", s.Message) != want {
			t.Errorf("%s: found %+v", said, err)
		}
		if strings.Contains(err.Error(), "Too many") || want == "" && code(t, err) != unusable {
			t.Errorf("%s: found %v", said, err)
		}
	}
}
