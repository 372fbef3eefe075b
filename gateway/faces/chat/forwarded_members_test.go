package chat_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/callgate/callgate/upstream"
)

// chunks answers a request for a stream with choices, each a chunk of its own; the last
// ends the stream.
func chunks(choices ...string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, c := range choices {
			event(w, c)
		}
		fmt.Fprint(w, "data: [DONE]\n\n")
	}
}

// delta is a chunk's choice.
func delta(members string) string {
	return `{"index":0,"delta":{` + members + `},"finish_reason":null}`
}

const stops = `{"index":0,"delta":{},"finish_reason":"stop"}`

// both are the two ways in which an answer comes: whole, and as a stream in which what
// stands beside the content comes before it.
func both(t *testing.T, p plan, message string, check func(how string, w *httptest.ResponseRecorder)) {
	t.Helper()
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(message), &members); err != nil {
		t.Fatalf("%s: %v", message, err)
	}
	var list []string
	for name, value := range members {
		if name != "content" && name != "role" && name != "tool_calls" {
			list = append(list, delta(quoted(name)+":"+string(value)))
		}
	}
	for _, name := range []string{"content", "tool_calls"} {
		if value := members[name]; value != nil {
			list = append(list, delta(quoted(name)+":"+string(value)))
		}
	}
	list = append(list, stops)
	check("whole", open(t, inTurn(says(message, "stop")), p).post(asks(tools("web_search", "time_now"))))
	check("stream", open(t, inTurn(chunks(list...)), p).post(asks(`"stream":true,`+tools("web_search", "time_now"))))
	held := p
	held.rules = all(p.rules, func(r *upstream.Rules) { r.StreamBuffer = upstream.Whole })
	check("stream, held", open(t, inTurn(chunks(list...)), held).post(asks(`"stream":true,`+tools("web_search", "time_now"))))
}

const (
	calling   = `{\"tool\":{\"name\":\"web.search\",\"arguments\":{}}}`
	speech    = `"audio":{"id":"audio_1","data":"UklG","expires_at":1700000000,"transcript":"Hello"}`
	signature = `"extra_content":{"google":{"thought_signature":"c2ln"}}`
	picture   = `"images":[{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBO"}}]`
	citation  = `"annotations":[{"type":"url_citation","url_citation":{"start_index":0,"end_index":2,"title":"T","url":"https://example.com/?a=1,2"}}]`
	twoTokens = `{"content":[{"token":"H","bytes":[72],"logprob":-0.1,"top_logprobs":[{"token":"H","bytes":[72],"logprob":-0.1}]},{"token":"i","bytes":[105],"logprob":-0.2,"top_logprobs":[]}],"refusal":null}`
)

// TestTranscriptIsJudged: what a model says aloud is judged as its text is.
func TestTranscriptIsJudged(t *testing.T) {
	textResult := func(content, transcript string) string {
		return `{"role":"assistant","content":` + content + `,"audio":{"id":"a","data":"UklG","transcript":` + transcript + `}}`
	}
	for protocol, rules := range bothProtocols {
		for transcript, code := range map[string]string{
			`"` + calling + `"`:                      "mixed_output",
			`"Sure: <tool_call>"`:                    "foreign_call_syntax",
			`"so {\"tool_calls\": []}"`:              "mixed_output",
			`"\u0022 {\"\u0066unction_call\" : {}}"`: "mixed_output",
			`"[TOOL_CALLS] web_search"`:              "foreign_call_syntax",
		} {
			for _, content := range []string{`"hi"`, "null", `""`} {
				both(t, plan{rules: all(rules, noRepairs)}, textResult(content, transcript), func(how string, w *httptest.ResponseRecorder) {
					got := reads(t, w)
					if got.Error.Code != code || got.done || strings.Contains(w.Body.String(), `"audio"`) || content != `"hi"` && w.Code != 422 {
						t.Errorf("%s, %s, %s beside %s: %d %s", protocol, how, transcript, content, w.Code, w.Body)
					}
				})
			}
		}
		for _, content := range []string{`"hi"`, "null"} {
			both(t, plan{rules: all(rules, noRepairs)}, `{"role":"assistant","content":`+content+`,`+speech+`}`, func(how string, w *httptest.ResponseRecorder) {
				got := reads(t, w)
				if w.Code != 200 || got.Error.Code != "" || !strings.Contains(w.Body.String(), speech) || got.text() != strings.Trim(strings.ReplaceAll(content, "null", ""), `"`) {
					t.Errorf("%s, %s, speech beside %s: %d %s", protocol, how, content, w.Code, w.Body)
				}
			})
			both(t, plan{rules: all(rules, noRepairs, func(r *upstream.Rules) { r.Audio = upstream.Drop })}, `{"role":"assistant","content":`+content+`,`+speech+`}`, func(how string, w *httptest.ResponseRecorder) {
				if strings.Contains(w.Body.String(), `"audio"`) || (w.Code == 200) != (content != "null") {
					t.Errorf("%s, %s, dropped beside %s: %d %s", protocol, how, content, w.Code, w.Body)
				}
			})
		}
		// In the text protocol the content may be a call, and speech beside it is not.
		if protocol == "text" {
			both(t, plan{rules: all(rules, noRepairs)}, textResult(`"`+strings.Replace(calling, "{}", `{\"query\":\"x\"}`, 1)+`"`, `"Hello"`), func(how string, w *httptest.ResponseRecorder) {
				if got := reads(t, w); w.Code != 422 || got.Error.Code != "mixed_output" {
					t.Errorf("%s, speech beside a call: %d %s", how, w.Code, w.Body)
				}
			})
		}
	}
	records := open(t, inTurn(says(`{"role":"assistant","content":null,`+speech+`}`, "stop")), plan{})
	records.post(asks(""))
	if found := records.settled(t); len(found) != 1 || !strings.HasSuffix(found[0], "text") {
		t.Errorf("the journal has %v", found)
	}
}

// TestSpeechIsRebuilt: of a member audio no more goes out than what speech is made of.
func TestSpeechIsRebuilt(t *testing.T) {
	for audio, want := range map[string]string{
		`{"id":"a","data":"UklG","transcript":"Hi","tool_calls":[{}],"x":{"tool":1}}`: `"audio":{"id":"a","data":"UklG","transcript":"Hi"}`,
		`{"id":"<tool_call>","data":"UklG","transcript":"Hi"}`:                        `"audio":{"data":"UklG","transcript":"Hi"}`,
		`{"id":1,"data":"UklG","transcript":"Hi","expires_at":"<tool_call>"}`:         `"audio":{"data":"UklG","transcript":"Hi"}`,
		`{"data":"{\"tool\":1}","transcript":"Hi"}`:                                   "",
		`{"data":"<tool_call>","transcript":"Hi"}`:                                    "",
		`{"data":"UklG","transcript":{"tool":1}}`:                                     "",
		`{"data":"UklG"}`: `"audio":{"data":"UklG"}`,
		`"<tool_call>"`:   "",
		`[{"tool":1}]`:    "",
		`null`:            "",
	} {
		h := open(t, inTurn(says(`{"role":"assistant","content":"hi","audio":`+audio+`}`, "stop")), plan{rules: noRepairs})
		w := h.post(asks(""))
		if got := w.Body.String(); w.Code != 200 || (want == "") == strings.Contains(got, `"audio"`) || !strings.Contains(got, want) {
			t.Errorf("%s: %d %s", audio, w.Code, got)
		}
	}
	// Without a transcript it belongs to the content, and is dropped where there is none.
	if w := open(t, inTurn(says(`{"role":"assistant","content":null,"audio":{"data":"UklG"}}`, "stop")), plan{rules: noRepairs}).post(asks("")); w.Code != 422 {
		t.Errorf("speech that nobody can judge: %d %s", w.Code, w.Body)
	}
	// Each piece of a stream is encoded by itself: joined, they are one encoding.
	h := open(t, inTurn(chunks(delta(`"audio":{"id":"a","transcript":"Hel"}`), delta(`"audio":{"data":"QQ=="}`), delta(`"audio":{"data":"QkM="}`), delta(`"audio":{"transcript":"lo","expires_at":7}`), stops)), plan{})
	if w := h.post(asks(`"stream":true`)); !strings.Contains(w.Body.String(), `"audio":{"id":"a","data":"QUJD","expires_at":7,"transcript":"Hello"}`) {
		t.Errorf("joined: %s", w.Body)
	}
}

// TestHeldUntilReleased: what belongs to a text goes out behind it, and not at all
// where the answer is refused.
func TestHeldUntilReleased(t *testing.T) {
	for _, member := range []string{speech, picture, citation, signature, `"thought_signature":"c2ln"`} {
		for name, c := range map[string]struct{ content, code string }{
			"a text":          {`"content":"Hello"`, ""},
			"a mark":          {`"content":"Sure <tool_call>"`, "foreign_call_syntax"},
			"a call in prose": {`"content":"` + calling + `"`, "mixed_output"},
			"a denied call":   {`"content":"So: ","tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"files_delete","arguments":"{}"}}]`, "unknown_tool"},
		} {
			both(t, plan{rules: noRepairs}, `{"role":"assistant",`+c.content+`,`+member+`}`, func(how string, w *httptest.ResponseRecorder) {
				body := w.Body.String()
				at, text := strings.Index(body, member), strings.Index(body, `"content":"Hello"`)
				if got := reads(t, w); got.Error.Code != c.code || (at >= 0) != (c.code == "") || c.code == "" && at < text {
					t.Errorf("%s, %s, %.12s: %d %s", name, how, member, w.Code, body)
				}
			})
		}
	}
	// Where the text beside a call is dropped, so is what belongs to it.
	for treatment, stays := range map[upstream.Treatment]bool{upstream.Pass: true, upstream.Drop: false} {
		message := `{"role":"assistant","content":"So: ",` + speech + `,` + citation + `,"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"time_now","arguments":"{}"}}]}`
		both(t, plan{rules: all(noRepairs, func(r *upstream.Rules) { r.NativeProse = treatment })}, message, func(how string, w *httptest.ResponseRecorder) {
			body := w.Body.String()
			if reads(t, w).call() != "time_now{}" || strings.Contains(body, citation) != stays || strings.Contains(body, speech) != stays {
				t.Errorf("%s, %s: %d %s", treatment, how, w.Code, body)
			}
		})
	}
	message := `{"role":"assistant","content":null,` + speech + `,"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"time_now","arguments":"{}"}}]}`
	both(t, plan{rules: all(noRepairs, func(r *upstream.Rules) { r.NativeProse = upstream.Refuse })}, message, func(how string, w *httptest.ResponseRecorder) {
		if reads(t, w).Error.Code != "mixed_output" {
			t.Errorf("speech beside a call, %s: %d %s", how, w.Code, w.Body)
		}
	})
}

// TestNothingBesideIsACall: what is passed on beside text and calls holds nothing that
// a reader could take for a call; what does is dropped, and the answer stands.
func TestNothingBesideIsACall(t *testing.T) {
	for name, value := range map[string]string{
		"a mark":            `[{"text":"<tool_call>"}]`,
		"an escaped mark":   `[{"text":"\u003ctool_call>"}]`,
		"a mark as a name":  `[{"<function=":1}]`,
		"a member":          `[{"tool_calls":[{"id":"a","type":"function","function":{"name":"time_now","arguments":"{}"}}]}]`,
		"an escaped member": `[{"x":{"y":1,"\u0074ool":{"name":"time.now"}}}]`,
		"a call in a text":  `[{"title":"` + calling + `"}]`,
	} {
		for _, member := range []string{"annotations", "images", "extra_content", "thought_signature"} {
			both(t, plan{rules: noRepairs}, `{"role":"assistant","content":"hi","`+member+`":`+value+`}`, func(how string, w *httptest.ResponseRecorder) {
				if got := reads(t, w); w.Code != 200 || got.text() != "hi" || strings.Contains(w.Body.String(), member) {
					t.Errorf("%s, %s, %s: %d %s", name, member, how, w.Code, w.Body)
				}
			})
		}
		call := `{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"time_now","arguments":"{}"},"extra_content":` + value + `}]}`
		both(t, plan{rules: noRepairs}, call, func(how string, w *httptest.ResponseRecorder) {
			if got := reads(t, w); got.call() != "time_now{}" || strings.Contains(w.Body.String(), "extra_content") {
				t.Errorf("%s, extra_content, %s: %d %s", name, how, w.Code, w.Body)
			}
		})
		for _, member := range []string{"citations", "prompt_filter_results", "service_tier", "system_fingerprint", "usage"} {
			value := value
			if member == "usage" {
				value = `{"total_tokens":3,"x":` + value + `}`
			}
			head := `{"id":"c","created":1,"model":"m","` + member + `":` + value + `,"choices":[`
			whole := answersBody(head + `{"index":0,"message":{"content":"hi"},"finish_reason":"stop"}]}`)
			streamed := sends("data: " + head + delta(`"content":"hi"`) + "]}\n\n")
			for how, w := range map[string]*httptest.ResponseRecorder{
				"whole":  open(t, inTurn(whole), plan{rules: noRepairs}).post(asks("")),
				"stream": open(t, inTurn(streamed), plan{rules: noRepairs}).post(asks(`"stream":true,"stream_options":{"include_usage":true}`)),
			} {
				if got := reads(t, w); got.text() != "hi" || (member == "usage") != strings.Contains(w.Body.String(), member) || strings.Contains(w.Body.String(), `"x":`) {
					t.Errorf("%s, %s, %s: %d %s", name, member, how, w.Code, w.Body)
				}
				if got := reads(t, w); member == "usage" && got.Usage["total_tokens"] != 3.0 {
					t.Errorf("%s, %s: the usage is %v", name, how, got.Usage)
				}
			}
		}
	}
	// A member that holds no call is passed on if the answer is whole.
	head := `{"id":"c","created":1,"model":"m","citations":["https://example.com/a,b"],"service_tier":"default","system_fingerprint":"fp_1","choices":[`
	w := open(t, inTurn(sends("data: "+head+delta(`"content":"hi"`)+"]}\n\n")), plan{}).post(asks(`"stream":true`))
	body := w.Body.String()
	if first, _, _ := strings.Cut(body, "\n\n"); strings.Contains(first, "citations") || !strings.Contains(first, `"service_tier":"default"`) ||
		!strings.Contains(first, `"system_fingerprint":"fp_1"`) || !strings.Contains(body, `"citations":["https://example.com/a,b"]`) {
		t.Errorf("found %s", body)
	}
	var calls []string
	for i := range 50 {
		calls = append(calls, fmt.Sprintf(`{"index":%d,"id":"c%d","type":"function","function":{"name":"time_now","arguments":"{}"}}`, i, i))
	}
	w = open(t, inTurn(sends("data: "+head+delta(`"tool_calls":[`+strings.Join(calls, ",")+`]`)+"]}\n\n")), plan{}).post(asks(`"stream":true,"stream_options":{"include_usage":true},` + tools("time_now")))
	if got := reads(t, w); len(got.Choices[0].Message.ToolCalls) != 50 || strings.Count(w.Body.String(), "citations") != 1 {
		t.Errorf("beside many calls: %s", w.Body)
	}
	if w = open(t, inTurn(sends("data: "+head+delta(`"content":"hi <tool_call>"`)+"]}\n\n")), plan{rules: noRepairs}).post(asks(`"stream":true`)); strings.Contains(w.Body.String(), "citations") {
		t.Errorf("of a refused answer: %s", w.Body)
	}
}

// TestLogprobsSpellTheText: the tokens of an answer are shown where, one behind the
// other, they are its content, byte for byte.
func TestLogprobsSpellTheText(t *testing.T) {
	for logprobs, passes := range map[string]bool{
		twoTokens: true,
		`{"content":[{"token":"Hi","logprob":0,"bytes":null,"top_logprobs":[]}]}`:                        true,
		`{"content":[{"token":"Hi","logprob":0}],"refusal":null}`:                                        true,
		`{"content":[{"token":"{\"tool\":","logprob":0}]}`:                                               false,
		`{"content":[{"token":"Hi","logprob":0},{"token":"{\"tool\":","logprob":0}]}`:                    false,
		`{"content":[{"token":"H","logprob":0}]}`:                                                        false,
		`{"content":[{"token":"<tool_call>","bytes":[72,105],"logprob":0}]}`:                             false,
		`{"content":[{"token":"Hi","bytes":[60,116],"logprob":0}]}`:                                      false,
		`{"content":[{"token":"Hi","bytes":[72,361],"logprob":0}]}`:                                      false,
		`{"content":[{"token":"Hi","logprob":0,"top_logprobs":[{"token":"{\"tool\":{","logprob":-9}]}]}`: false,
		`{"content":[{"token":"Hi","logprob":0,"top_logprobs":[{"token":"<tool_call>","logprob":-9}]}]}`: false,
		`{"content":[{"token":"Hi","logprob":0,"tool_calls":[]}]}`:                                       false,
		`{"content":[{"token":"Hi","logprob":0}],"refusal":[{"token":"{\"tool\":","logprob":0}]}`:        false,
		`{"content":[{"token":"Hi","logprob":0}],"tool":{}}`:                                             false,
		`{"content":[{"token":"Hi","logprob":0}],"more":"x"}`:                                            false,
		`{"content":[{"logprob":0}]}`:                                                                    false,
		`{"content":["Hi"]}`:                                                                             false,
		`{"content":{"token":"Hi"}}`:                                                                     false,
		`{"tokens":["Hi"],"token_logprobs":[0]}`:                                                         false,
		`"Hi"`:                                                                                           false,
		`[]`:                                                                                             false,
	} {
		choice := `{"index":0,"logprobs":` + logprobs + `,"finish_reason":"stop",`
		whole := open(t, inTurn(answersBody(`{"id":"c","created":1,"model":"m","choices":[`+choice+`"message":{"content":"Hi"}}]}`)), plan{}).post(asks(""))
		streamed := open(t, inTurn(chunks(choice+`"delta":{"content":"Hi"}}`)), plan{}).post(asks(`"stream":true`))
		for how, w := range map[string]*httptest.ResponseRecorder{"whole": whole, "stream": streamed} {
			if got := reads(t, w); w.Code != 200 || got.text() != "Hi" || strings.Contains(w.Body.String(), `"logprobs":`+logprobs) != passes || !passes && strings.Contains(w.Body.String(), `"logprobs":{`) {
				t.Errorf("%s, %s: %d %s", logprobs, how, w.Code, w.Body)
			}
		}
	}
	// A character in two tokens: the name of each is not the character.
	const split = `{"content":[{"token":"\\xc3","bytes":[195],"logprob":0},{"token":"\\xa9","bytes":[169],"logprob":0}]}`
	w := open(t, inTurn(answersBody(`{"id":"c","created":1,"model":"m","choices":[{"index":0,"logprobs":`+split+`,"finish_reason":"stop","message":{"content":"é"}}]}`)), plan{}).post(asks(""))
	if !strings.Contains(w.Body.String(), split) {
		t.Errorf("a character in two tokens: %s", w.Body)
	}
	// Held back with the text, of which it may not be known yet what it is.
	w = open(t, inTurn(chunks(`{"index":0,"delta":{"content":"{\"too"},"logprobs":{"content":[{"token":"{\"too","logprob":0}]}}`, delta(`"content":"l\":{}}"`), stops)), plan{rules: noRepairs}).post(asks(`"stream":true`))
	if got := reads(t, w); got.Error.Code != "mixed_output" || strings.Contains(w.Body.String(), "logprobs") {
		t.Errorf("held back: %s", w.Body)
	}
}

// TestReasoningStopsAtARefusal: once the content of a choice is refused, nothing more of
// the choice goes out.
func TestReasoningStopsAtARefusal(t *testing.T) {
	w := open(t, inTurn(chunks(delta(`"reasoning_content":"before"`), delta(`"content":"Sure <tool_call>"`), delta(`"reasoning_content":"behind"`), stops)), plan{rules: noRepairs}).post(asks(`"stream":true`))
	if got := reads(t, w); got.Error.Code != "foreign_call_syntax" || !strings.Contains(w.Body.String(), "before") || strings.Contains(w.Body.String(), "behind") {
		t.Errorf("found %s", w.Body)
	}
	w = open(t, inTurn(chunks(delta(`"content":"Sure."`), delta(`"reasoning_content":"behind"`), stops)), plan{}).post(asks(`"stream":true`))
	if got := reads(t, w); !got.done || !strings.Contains(w.Body.String(), "behind") {
		t.Errorf("found %s", w.Body)
	}
}

// TestTextIsShownOnce: a refusal, or speech, that comes behind a text that was shown
// does not show it again.
func TestTextIsShownOnce(t *testing.T) {
	for protocol, rules := range bothProtocols {
		for _, more := range []string{`"refusal":"I will not."`, speech} {
			h := open(t, inTurn(chunks(delta(`"content":"Hello"`), delta(more), stops)), plan{rules: rules})
			w := h.post(asks(`"stream":true`))
			if got := reads(t, w); got.text() != "Hello" || !got.done {
				t.Errorf("%s, %.9s: %s", protocol, more, w.Body)
			}
			for _, record := range h.settled(t) {
				if !strings.HasSuffix(record, "text") {
					t.Errorf("%s, %.9s: the journal has %q", protocol, more, record)
				}
			}
		}
	}
}

// TestPiecesOfOneChunk: two pieces of one answer in one chunk are shown once each, and refused as one text.
func TestPiecesOfOneChunk(t *testing.T) {
	two := delta(`"content":"Hel"`) + "," + delta(`"content":"lo"`)
	for protocol, rules := range bothProtocols {
		h := open(t, inTurn(chunks(two, two, stops)), plan{rules: rules})
		if w := h.post(asks(`"stream":true`)); reads(t, w).text() != "HelloHello" || !reads(t, w).done {
			t.Errorf("%s: %s", protocol, w.Body)
		}
		h = open(t, inTurn(chunks(delta(`"content":"Hi <tool_"`)+","+delta(`"content":"call>"`), stops)), plan{rules: all(noRepairs, rules)})
		if got := reads(t, h.post(asks(`"stream":true`))); got.text() != "Hi " || got.Error.Code != "foreign_call_syntax" {
			t.Errorf("%s: %+v", protocol, got)
		}
	}
}

// TestWordsOfAProvider: what a provider says of its answer is of a form, or is not
// passed on.
func TestWordsOfAProvider(t *testing.T) {
	const body = `{"id":ID,"created":1,"model":MODEL,"system_fingerprint":PRINT,"service_tier":TIER,"choices":[{"index":0,"message":{"content":"hi"},"finish_reason":REASON}]}`
	send := func(changes map[string]string) (whole, streamed *httptest.ResponseRecorder) {
		b := body
		for _, name := range []string{"ID", "MODEL", "PRINT", "TIER", "REASON"} {
			value, stated := changes[name]
			if !stated {
				value = map[string]string{"ID": `"c"`, "MODEL": `"m-1"`, "PRINT": `"fp"`, "TIER": `"default"`, "REASON": `"stop"`}[name]
			}
			b = strings.Replace(b, name, value, 1)
		}
		whole = open(t, inTurn(answersBody(b)), plan{rules: noRepairs}).post(asks(""))
		streamed = open(t, inTurn(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "data: %s\n\ndata: [DONE]\n\n", strings.Replace(b, `"message"`, `"delta"`, 1))
		}), plan{rules: noRepairs}).post(asks(`"stream":true`))
		return whole, streamed
	}
	each := func(changes map[string]string, check func(got completion, body string) bool) {
		t.Helper()
		whole, streamed := send(changes)
		for _, w := range []*httptest.ResponseRecorder{whole, streamed} {
			if !check(reads(t, w), w.Body.String()) {
				t.Errorf("%.200v: %d %.600s", changes, w.Code, w.Body)
			}
		}
	}
	long := `"` + strings.Repeat("x", 300) + `"`
	for reason, want := range map[string]string{
		`"stop"`: "stop", `"end_turn"`: "end_turn", `"STOP"`: "STOP", `"length"`: "length", `"tool_calls"`: "stop", `"function_call"`: "stop",
	} {
		each(map[string]string{"REASON": reason}, func(got completion, _ string) bool { return got.text() == "hi" && got.Choices[0].FinishReason == want })
	}
	for _, reason := range []string{`"<tool_call>"`, `"\u202estop"`, `"{\"tool\":1}"`, `"a b"`, `"a\nb"`, long} {
		each(map[string]string{"REASON": reason}, func(got completion, _ string) bool {
			return got.Error.Code == "upstream_unavailable" && got.text() == ""
		})
	}
	for _, id := range []string{`"\u202e\"}\n\ndata: x"`, `"<tool_call>"`, `"{\"tool\":1}"`, long, `"a b"`} {
		each(map[string]string{"ID": id}, func(got completion, _ string) bool { return got.text() == "hi" && got.ID == "" })
	}
	each(map[string]string{"ID": `"chatcmpl-a_b.c:d/e=+~@1"`}, func(got completion, _ string) bool { return got.ID == "chatcmpl-a_b.c:d/e=+~@1" })
	for model, want := range map[string]string{
		`"Qwen3 (8B), Ünï_1:q4"`: "Qwen3 (8B), Ünï_1:q4", `"<tool_call>"`: "m", `"{\"tool\":{}}"`: "m", `"a\u202eb"`: "m", long: "m", `""`: "m",
	} {
		each(map[string]string{"MODEL": model}, func(got completion, _ string) bool { return got.text() == "hi" && got.Model == want })
	}
	for _, term := range []string{`"<tool_call>"`, `{"tool_calls":[]}`, `["a"]`, `"\u202e"`, long, "1"} {
		each(map[string]string{"PRINT": term, "TIER": term}, func(got completion, body string) bool {
			return got.text() == "hi" && !strings.Contains(body, "system_fingerprint") && !strings.Contains(body, "service_tier")
		})
	}
	for _, id := range []string{"<tool_call>", "{\\\"tool\\\":1}", "a b", "a\\u202e"} {
		both(t, plan{rules: noRepairs}, `{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"`+id+`","type":"function","function":{"name":"time_now","arguments":"{}"}}]}`, func(how string, w *httptest.ResponseRecorder) {
			if got := reads(t, w); w.Code != 502 || got.Error.Code != "upstream_unavailable" {
				t.Errorf("a call with the id %s, %s: %d %s", id, how, w.Code, w.Body)
			}
		})
	}
}
