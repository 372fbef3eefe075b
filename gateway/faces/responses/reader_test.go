package responses

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/testkit/detector"
)

// Items of the base stream, as their last places state them.
const (
	reasoningItem = `{"id":"rs_1","type":"reasoning","summary":[]}`
	messageItem   = `{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","annotations":[],"text":"I look."}]}`
	callItem      = `{"id":"fc_1","type":"function_call","status":"completed","call_id":"call_1","name":"read","arguments":"{\"a\":1}"}`
	shellItem     = `{"id":"sh_1","type":"shell_call","status":"completed","call_id":"call_2","action":{"commands":["ls -a"],"timeout_ms":null},"environment":{"type":"local"}}`
	patchItem     = `{"id":"apc_1","type":"apply_patch_call","status":"completed","call_id":"call_3","operation":{"type":"create_file","path":"a","diff":"+x"}}`
	customItem    = `{"id":"ctc_1","type":"custom_tool_call","status":"completed","call_id":"call_4","name":"sql","input":"SELECT 1"}`
)

// base is a stream with a call of each kind that has deltas.
func base() []string {
	return []string{
		0:  `{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","created_at":1,"status":"in_progress","output":[]}}`,
		1:  `{"type":"response.in_progress","sequence_number":1,"response":{"id":"resp_1","object":"response","status":"in_progress","output":[]}}`,
		2:  `{"type":"response.output_item.added","sequence_number":2,"output_index":0,"item":` + reasoningItem + `}`,
		3:  `{"type":"response.output_item.done","sequence_number":3,"output_index":0,"item":` + reasoningItem + `}`,
		4:  `{"type":"response.output_item.added","sequence_number":4,"output_index":1,"item":{"id":"msg_1","type":"message","status":"in_progress","role":"assistant","content":[]}}`,
		5:  `{"type":"response.content_part.added","sequence_number":5,"output_index":1,"item_id":"msg_1","content_index":0,"part":{"type":"output_text","text":""}}`,
		6:  `{"type":"response.output_text.delta","sequence_number":6,"output_index":1,"item_id":"msg_1","content_index":0,"delta":"I lo"}`,
		7:  `{"type":"response.output_text.delta","sequence_number":7,"output_index":1,"item_id":"msg_1","content_index":0,"delta":"ok.","obfuscation":"x"}`,
		8:  `{"type":"response.output_text.done","sequence_number":8,"output_index":1,"item_id":"msg_1","content_index":0,"text":"I look."}`,
		9:  `{"type":"response.content_part.done","sequence_number":9,"output_index":1,"item_id":"msg_1","content_index":0,"part":{"type":"output_text","text":"I look."}}`,
		10: `{"type":"response.output_item.done","sequence_number":10,"output_index":1,"item":` + messageItem + `}`,
		11: `{"type":"response.output_item.added","sequence_number":11,"output_index":2,"item":{"id":"fc_1","type":"function_call","status":"in_progress","call_id":"call_1","name":"read","arguments":""}}`,
		12: `{"type":"response.function_call_arguments.delta","sequence_number":12,"output_index":2,"item_id":"fc_1","delta":"{\"a\""}`,
		13: `{"type":"response.function_call_arguments.delta","sequence_number":13,"output_index":2,"item_id":"fc_1","delta":":1}"}`,
		14: `{"type":"response.function_call_arguments.done","sequence_number":14,"output_index":2,"item_id":"fc_1","arguments":"{\"a\":1}"}`,
		15: `{"type":"response.output_item.done","sequence_number":15,"output_index":2,"item":` + callItem + `}`,
		16: `{"type":"response.output_item.added","sequence_number":16,"output_index":3,"item":{"id":"sh_1","type":"shell_call","status":"in_progress","call_id":"call_2","action":{"commands":[],"timeout_ms":null},"environment":{"type":"local"}}}`,
		17: `{"type":"response.shell_call_command.added","sequence_number":17,"output_index":3,"command_index":0,"command":""}`,
		18: `{"type":"response.shell_call_command.delta","sequence_number":18,"output_index":3,"command_index":0,"delta":"ls -a"}`,
		19: `{"type":"response.shell_call_command.done","sequence_number":19,"output_index":3,"command_index":0,"command":"ls -a"}`,
		20: `{"type":"response.output_item.done","sequence_number":20,"output_index":3,"item":` + shellItem + `}`,
		21: `{"type":"response.output_item.added","sequence_number":21,"output_index":4,"item":{"id":"apc_1","type":"apply_patch_call","status":"in_progress","call_id":"call_3","operation":{"type":"create_file","path":"a","diff":""}}}`,
		22: `{"type":"response.apply_patch_call_operation_diff.delta","sequence_number":22,"output_index":4,"item_id":"apc_1","delta":"+x"}`,
		23: `{"type":"response.apply_patch_call_operation_diff.done","sequence_number":23,"output_index":4,"item_id":"apc_1","diff":"+x"}`,
		24: `{"type":"response.output_item.done","sequence_number":24,"output_index":4,"item":` + patchItem + `}`,
		25: `{"type":"response.output_item.added","sequence_number":25,"output_index":5,"item":{"id":"ctc_1","type":"custom_tool_call","status":"in_progress","call_id":"call_4","name":"sql","input":""}}`,
		26: `{"type":"response.custom_tool_call_input.delta","sequence_number":26,"output_index":5,"item_id":"ctc_1","delta":"SELECT 1"}`,
		27: `{"type":"response.custom_tool_call_input.done","sequence_number":27,"output_index":5,"item_id":"ctc_1","input":"SELECT 1"}`,
		28: `{"type":"response.output_item.done","sequence_number":28,"output_index":5,"item":` + customItem + `}`,
		29: `{"type":"response.completed","sequence_number":29,"response":` + baseResponse + `}`,
	}
}

const baseResponse = `{"id":"resp_1","object":"response","created_at":1,"status":"completed","error":null,"incomplete_details":null,"model":"m","output":[` +
	reasoningItem + `,` + messageItem + `,` + callItem + `,` + shellItem + `,` + patchItem + `,` + customItem + `],"usage":{"input_tokens":3,"output_tokens":4,"total_tokens":7}}`

// body writes events as a stream, with the names that their types are.
func body(events []string) []byte {
	var b bytes.Buffer
	for _, data := range events {
		if data == "[DONE]" || !strings.HasPrefix(data, `{"type":"`) {
			fmt.Fprintf(&b, "data: %s\n\n", data)
			continue
		}
		fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", data[9:9+strings.IndexByte(data[9:], '"')], data)
	}
	return b.Bytes()
}

const baseReply = "completed  7\nreasoning "

func TestStream(t *testing.T) {
	whole, err := readWhole([]byte(baseResponse), strict())
	if err != nil || !strings.HasPrefix(describe(whole), baseReply) {
		t.Fatalf("%s, %v", describe(whole), cause(err))
	}
	if all := callsOf(whole); !slices.Equal(all, []string{`function_call call_1  read {"a":1}`, `custom_tool_call call_4  sql SELECT 1`}) {
		t.Errorf("%q", all)
	}
	if p := string(whole.items[3].call.payload); p != `{"commands":["ls -a"],"timeout_ms":null}` {
		t.Error(p)
	}
	without := func(at int, old, by string) func() []string { return replaced(at, old, by) }
	for name, events := range map[string]func() []string{
		"as it is":          base,
		"[DONE] at the end": func() []string { return append(base(), "[DONE]") },
		"no output in the terminal event (RS-44)": without(29, `"output":[`+reasoningItem+`,`+messageItem+`,`+callItem+`,`+shellItem+`,`+patchItem+`,`+customItem+`]`, `"output":[]`),
		"no deltas (RS-43)":                       func() []string { return slices.Delete(base(), 12, 14) },
		"no ends of arguments":                    func() []string { return slices.Delete(base(), 12, 15) },
		"no events of a command":                  func() []string { return slices.Delete(base(), 17, 20) },
		"no events of a text":                     func() []string { return slices.Delete(base(), 5, 10) },
		"no event of a part":                      func() []string { return slices.Delete(base(), 5, 6) },
		"calls in the terminal event alone":       func() []string { return slices.Delete(base(), 11, 29) },
		"an item in the terminal event alone":     func() []string { return slices.Delete(base(), 25, 29) },
		"a gap in the numbers (RS-45)":            without(29, `"sequence_number":29`, `"sequence_number":99`),
		"one number for all (RS-45)": func() []string {
			return strings.Split(regexp.MustCompile(`"sequence_number":\d+`).ReplaceAllString(strings.Join(base(), "\n"), `"sequence_number":7`), "\n")
		},
		"a number of the end that falls (RS-45)": without(29, `"sequence_number":29`, `"sequence_number":0`),
		"a number that is none (RS-45)":          without(12, `"sequence_number":12`, `"sequence_number":null`),
		"no index at the end (RS-47)":            without(15, `"output_index":2,`, ``),
		"no index of a delta (RS-47)":            without(12, `"output_index":2,`, ``),
		"no index and no id of a delta (RS-47)":  without(12, `"output_index":2,"item_id":"fc_1",`, ``),
		"no indexes (RS-47)":                     func() []string { return indexless(base()) },
		"no indexes, and no id of a call but in its events": func() []string {
			e := indexless(base())
			e[11] = strings.NewReplacer(`"id":"fc_1",`, ``, `"call_id":"call_1",`, ``).Replace(e[11])
			return e
		},
		"no content_index": without(6, `"content_index":0,`, ``),
		"indexes with gaps (RS-63)": func() []string {
			return strings.Split(regexp.MustCompile(`"output_index":(\d)`).ReplaceAllString(strings.Join(base(), "\n"), `"output_index":1${1}0`), "\n")
		},
		"an id that changes (RS-46)":         without(8, `"item_id":"msg_1"`, `"item_id":"other"`),
		"an id of a message that changes":    without(10, `"id":"msg_1"`, `"id":"msg_9"`),
		"an id of the response that changes": without(1, `resp_1`, `resp_2`),
		"no status in the terminal event":    without(29, `"status":"completed","error"`, `"error"`),
		"arguments in the first place": func() []string {
			return slices.Delete(replaced(11, `"arguments":""`, `"arguments":"{\"a\":1}"`)(), 12, 14)
		},
		"all arguments in the first place too":    without(11, `"arguments":""`, `"arguments":"{\"a\":1}"`),
		"a piece in the first place too":          without(11, `"arguments":""`, `"arguments":"{\"a\""`),
		"arguments written otherwise in the item": without(15, `{\"a\":1}`, `{ \"a\": 1.0 }`),
		"arguments written otherwise at the end":  without(14, `{\"a\":1}`, `{\"\\u0061\":1}`),
		"another call_id at the end of a call":    without(15, `"call_id":"call_1"`, `"call_id":"call_9"`),
		"another call_id at the end":              without(29, `"call_id":"call_1"`, `"call_id":"call_9"`),
		"the name in the end of arguments":        without(14, `"arguments"`, `"name":"read","arguments"`),
		"no arguments in the first place":         without(11, `"arguments":""`, `"arguments":null`),
		"none in the last":                        without(15, `"arguments":"{\"a\":1}"`, `"arguments":null`),
		"an object in the last":                   without(15, `"arguments":"{\"a\":1}"`, `"arguments":{"a":1}`),
		"no id of the response":                   without(0, `"id":"resp_1",`, ``),
		"an id with spaces":                       without(0, `resp_1`, `resp 1`),
		"a call_id that comes late":               without(11, `"call_id":"call_1",`, ``),
		"an empty call_id first":                  without(11, `"call_id":"call_1"`, `"call_id":""`),
		"no call_id at the end":                   without(29, `"call_id":"call_1"`, `"call_id":null`),
		"a name that comes late":                  without(11, `"name":"read",`, ``),
		"no name at the end":                      without(29, `"name":"read"`, `"name":null`),
		"an object in the first place":            without(11, `"arguments":""`, `"arguments":{}`),
		"{} in the first place":                   without(11, `"arguments":""`, `"arguments":"{}"`),
		"a piece that is null": func() []string {
			return renumbered(inserted(13, `{"type":"response.function_call_arguments.delta","output_index":2,"delta":null}`)())
		},
		"an empty error":                        without(29, `"error":null`, `"error":{}`),
		"an empty error of an event":            without(12, `"delta"`, `"error":{},"delta"`),
		"a ping":                                inserted(12, `{"type":"ping"}`),
		"usage with floats":                     without(29, `"input_tokens":3,"output_tokens":4,"total_tokens":7`, `"input_tokens":3.0,"output_tokens":4,"total_tokens":null`),
		"an answer that was asked to be padded": without(6, `"delta"`, `"obfuscation":"}{","delta"`),
		"keepalive":                             inserted(12, `{"type":"keepalive","sequence_number":12}`),
	} {
		if name == "keepalive" {
			events = func() []string { return renumbered(inserted(12, `{"type":"keepalive","sequence_number":12}`)()) }
		}
		reply, err := read(bytes.NewReader(body(events())), strict())
		if err != nil {
			t.Errorf("%s: %v", name, cause(err))
		} else if describe(reply) != describe(whole) {
			t.Errorf("%s: %s", name, describe(reply))
		}
	}
}

// replaced is the base stream with an event changed; every change must find its place.
func replaced(at int, old, by string) func() []string {
	return func() []string { return edited(base(), at, old, by) }
}

func edited(events []string, at int, old, by string) []string {
	if !strings.Contains(events[at], old) {
		panic("nothing to replace: " + old)
	}
	events[at] = strings.Replace(events[at], old, by, 1)
	return events
}

func inserted(at int, data ...string) func() []string {
	return func() []string { return slices.Insert(base(), at, data...) }
}

func deleted(from, to int) func() []string {
	return func() []string { return slices.Delete(base(), from, to) }
}

// renumbered drops the sequence_numbers.
func renumbered(events []string) []string {
	for i, data := range events {
		if at := strings.Index(data, `"sequence_number":`); at >= 0 {
			end := at + strings.IndexAny(data[at:], ",}")
			if data[end] == ',' {
				end++
			} else {
				at--
			}
			events[i] = data[:at] + data[end:]
		}
	}
	return events
}

// indexless drops the indexes.
func indexless(events []string) []string {
	for i := range events {
		events[i] = regexp.MustCompile(`"(output|content)_index":\d,`).ReplaceAllString(events[i], "")
	}
	return renumbered(events)
}

// TestNoArguments: what is known to hold no arguments takes the place of none.
func TestNoArguments(t *testing.T) {
	for _, events := range [][]string{
		{},
		{`{"type":"response.function_call_arguments.delta","output_index":2,"delta":"","obfuscation":"x","agent":{"agent_name":"a"},"response_id":"r"}`},
		{`{"type":"response.function_call_arguments.done","output_index":2,"name":"read","arguments":"","input":null,"x":7}`},
	} {
		if _, err := read(bytes.NewReader(body(withoutArguments(events...)())), strict()); err != nil {
			t.Errorf("%s: %v", events, cause(err))
		}
	}
}

func TestHostileStreams(t *testing.T) {
	if len(hostile) < 60 {
		t.Fatal(len(hostile))
	}
	for name, events := range hostile {
		reply, err := read(bytes.NewReader(body(events())), strict())
		if err == nil {
			t.Errorf("%s: read, as %s", name, describe(reply))
		}
	}
	for _, data := range []string{base()[13], `{"type":7}`, `{"type":"ping"`} {
		if _, err := newReader(strict()).Event([]byte("ping"), []byte(data)); err == nil {
			t.Errorf("a ping drops %s", data)
		}
	}
	for _, data := range []string{``, `now`, `{}`, ` {"type":"ping"}`} {
		if _, err := newReader(strict()).Event([]byte("ping"), []byte(data)); err != nil {
			t.Errorf("a ping of %s: %v", data, cause(err))
		}
	}
	// The name of an event is not believed where it contradicts the type.
	if _, err := newReader(strict()).Event([]byte("response.in_progress"), []byte(base()[0])); err == nil {
		t.Error("an event under another name is read")
	}
}

// TestTruncatedStream cuts a stream at every byte: a call is never there.
func TestTruncatedStream(t *testing.T) {
	detector.OneGoroutine(t)
	b := body(base())
	end := bytes.LastIndex(b, []byte("\n\n"))
	for cut := range end {
		if reply, err := read(bytes.NewReader(b[:cut]), strict()); err == nil || reply != nil {
			t.Fatalf("cut at byte %d: read", cut)
		}
	}
	for cut := range len(baseResponse) {
		if reply, err := readWhole([]byte(baseResponse[:cut]), strict()); err == nil || reply != nil {
			t.Fatalf("whole, cut at byte %d: read", cut)
		}
	}
}

// TestIncomplete: an item that has not ended is not complete, and neither is the reply.
func TestIncomplete(t *testing.T) {
	events := append(base()[:13], `{"type":"response.incomplete","sequence_number":40,"response":{"id":"resp_1","status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[]}}`)
	reply, err := read(bytes.NewReader(body(events)), strict())
	if err != nil || reply.answer.End != turns.Cut || string(reply.reply.Head.Get(memberDetails)) != `{"reason":"max_output_tokens"}` || reply.items[2].complete || reply.items[2].done {
		t.Errorf("%+v, %v", reply, cause(err))
	}
	whole := strings.Replace(strings.Replace(baseResponse, `"status":"completed","error"`, `"status":"incomplete","error"`, 1), `"status":"completed","call_id":"call_2"`, `"status":"in_progress","call_id":"call_2"`, 1)
	reply, err = readWhole([]byte(whole), strict())
	if err != nil || reply.answer.End != turns.Cut || !reply.items[2].complete || reply.items[3].complete {
		t.Errorf("%+v, %v", reply, cause(err))
	}
}

// TestContradictions: a reply is as incomplete as any of its places says.
func TestContradictions(t *testing.T) {
	for _, reason := range []string{"content_filter", "max_output_tokens"} {
		reply, err := read(bytes.NewReader(body(replaced(29, `"incomplete_details":null`, `"incomplete_details":{"reason":"`+reason+`"}`)())), strict())
		if err != nil || reply.answer.End != turns.Cut || !reply.answer.Partial || (reply.answer.Withheld != "") != (reason == "content_filter") {
			t.Errorf("%s: %+v, %v", reason, reply, cause(err))
		}
	}
	for _, at := range []int{15, 29} {
		reply, err := read(bytes.NewReader(body(replaced(at, `"type":"function_call","status":"completed"`, `"type":"function_call","status":"incomplete"`)())), strict())
		if err != nil || !reply.items[2].own.Cut {
			t.Errorf("in event %d: %+v, %v", at, reply, cause(err))
		}
	}
}

// TestProviderErrors: the provider's own words are kept, but not in the text of the error.
func TestProviderErrors(t *testing.T) {
	for _, data := range []string{
		`{"type":"error","sequence_number":2,"error":{"type":"tokens","code":"rate_limit_exceeded","message":"wait"}}`,
		`{"type":"error","code":"rate_limit_exceeded","message":"wait"}`,
		`{"error":{"code":"rate_limit_exceeded","message":"wait"}}`,
		`{"code":"rate_limit_exceeded","message":"wait"}`,
		`  {"type":"error","code":"rate_limit_exceeded","message":"wait"}`,
		`{"type":"response.failed","response":{"id":"resp_1","status":"failed","error":{"code":"rate_limit_exceeded","message":"wait"}}}`,
	} {
		_, err := read(bytes.NewReader(body(append(base()[:2], data))), strict())
		var failed *turns.ProviderError
		if !errors.As(err, &failed) || failed.Failure.Code != "rate_limit_exceeded" || failed.Failure.Message != "wait" || failed.Failure.Type == "error" || strings.Contains(err.Error(), "wait") {
			t.Errorf("%s: %v %+v", data, err, failed)
		}
	}
	for _, body := range []string{`{"id":"resp_1","status":"failed","error":"no"}`, `{"detail":"no"}`, `{"object":"error","message":"no","output":null}`, `{"id":"x","error":{},"reason":"no"}`} {
		_, err := readWhole([]byte(body), strict())
		var failed *turns.ProviderError
		if !errors.As(err, &failed) || failed.Failure.Message != "no" {
			t.Errorf("%s: %v", body, err)
		}
	}
	_, err := readWhole([]byte(`{"id":"resp_1","status":"failed","error":{"code":null,"message":null}}`), strict())
	var failed *turns.ProviderError
	if !errors.As(err, &failed) || failed.Failure.Code+failed.Failure.Message != "" {
		t.Errorf("an error of nulls: %v, %+v", err, failed)
	}
	for _, body := range []string{`{}`, `{"id":"resp_1"}`, `{"foo":"no"}`} {
		if _, err := readWhole([]byte(body), strict()); err == nil {
			t.Errorf("%s: read", body)
		}
	}
}

// TestTextsAlone: the end of a stream without indexes need not list its items, where none is a call.
func TestTextsAlone(t *testing.T) {
	events := append(indexless(base())[:11], `{"type":"response.completed","response":{"id":"resp_1","status":"completed","output":[]}}`)
	if reply, err := read(bytes.NewReader(body(events)), strict()); err != nil || len(reply.items) != 2 {
		t.Errorf("%+v, %v", reply, cause(err))
	}
}

// TestUsage: usage that cannot be read is none, and does not end an answer.
func TestUsage(t *testing.T) {
	for usage, want := range map[string]string{
		`{"input_tokens":3.0,"output_tokens":null,"total_tokens":7}`: "7 true",
		`{"input_tokens":"3"}`:                   "0 false",
		`{"input_tokens":3,"output_tokens":-1}`:  "0 false",
		`{"input_tokens":3,"output_tokens":0.5}`: "0 false",
		`"none"`:                                 "0 false", `[]`: "0 false", `5`: "0 false",
	} {
		r, err := readWhole([]byte(`{"id":"resp_1","status":"completed","output":[`+messageItem+`],"usage":`+usage+`}`), strict())
		if err != nil {
			t.Errorf("%s: %v", usage, err)
		} else if found := fmt.Sprint(r.reply.Usage.Tokens, r.reply.Usage.Raw != nil); found != want {
			t.Errorf("%s: found %s, expected %s", usage, found, want)
		}
	}
}

// TestArguments: arguments that are an object are its bytes, and none are none, unless they may stand in another member.
func TestArguments(t *testing.T) {
	for members, want := range map[string]string{
		`"arguments":{"a": 1}`: `{"a": 1}`, `"arguments":null`: ``, `"x":1`: ``, `"arguments":"","input":null`: ``, `"arguments":"{\"a\":1}","input":"x"`: `{"a":1}`, `"arguments":"{}","caller":{"type":"direct"},"parameters":{},"x":" ","y":7`: `{}`,
		`"arguments":[]`: `refused`, `"arguments":5`: `refused`, `"input":"{}"`: ``, `"arguments":"","parameters":{"a":1}`: `refused`, `"arguments":null,"input":{"a":1}`: `refused`,
		`"arguments":{},"input":{"a":1}`: `refused`, `"arguments":"{}","parameters":"{\"a\":1}"`: `refused`, `"arguments":"  ","parameters":{"a":1}`: `refused`,
		`"args":{"a":1}`: `refused`, `"params":["a"]`: `refused`, `"function":{"arguments":"{\"a\":1}"}`: `refused`, `"arguments":"{}","action":{"a":1}`: `refused`,
	} {
		r, err := readWhole([]byte(`{"id":"resp_1","status":"completed","output":[{"type":"function_call","call_id":"c","name":"f",`+members+`}]}`), strict())
		found := "refused"
		if err == nil {
			found = string(r.items[0].call.payload)
			if raw := string(r.items[0].raw); !strings.Contains(raw, `"arguments":"`) {
				t.Errorf("%s: it is written as %s", members, raw)
			}
		}
		if found != want {
			t.Errorf("%s: found %s, %v, expected %s", members, found, err, want)
		}
	}
}

// TestBounds: items and calls of a reply are bounded.
func TestBounds(t *testing.T) {
	var items []string
	for i := range 1025 {
		items = append(items, fmt.Sprintf(`{"type":"reasoning","id":"rs_%d","summary":[]}`, i))
	}
	if _, err := readWhole(fmt.Appendf(nil, `{"id":"r","status":"completed","output":[%s]}`, strings.Join(items, ",")), strict()); err == nil {
		t.Error("1,025 items are read")
	}
	items = nil
	for i := range 129 {
		items = append(items, fmt.Sprintf(`{"type":"function_call","call_id":"c_%d","name":"x","arguments":""}`, i))
	}
	if _, err := readWhole(fmt.Appendf(nil, `{"id":"r","status":"completed","output":[%s]}`, strings.Join(items, ",")), strict()); err == nil {
		t.Error("129 calls are read")
	}
}

// TestPassOther: an event is passed on with other numbers and without its padding, whatever
// white space it begins with.
func TestPassOther(t *testing.T) {
	const delta = `{"type":"response.reasoning_summary_text.delta","obfuscation":"x","sequence_number":3,"output_index":0,"item_id":"zz","summary_index":0,"delta":"a"}`
	for _, space := range []string{"", " ", "\t\r\n"} {
		r := newReader(strict())
		var deltas []turns.Delta
		for _, data := range append(base()[:3], space+delta) {
			var err error
			if deltas, err = r.Event(nil, []byte(data)); err != nil {
				t.Fatal(err)
			}
		}
		w := &writer{id: "resp_1", sequence: 7}
		r.items[0].sent = sentItem{added: true, index: 5}
		want := `data: {"sequence_number":7,"type":"response.reasoning_summary_text.delta","output_index":5,"item_id":"rs_1","summary_index":0,"delta":"a"}`
		if got := string(w.Delta(nil, &deltas[0], nil)); !strings.Contains(got, want+"\n") {
			t.Errorf("behind %q: %s; expected %s", space, got, want)
		}
		bare := turns.Delta{Is: turns.Mark, Part: deltas[0].Part, Name: "x", Raw: []byte(`{"type":"x","item_id":"rs_1"}`)}
		if got := string(w.Delta(nil, &bare, nil)); !strings.Contains(got, `"item_id":"rs_1","output_index":5}`) {
			t.Errorf("without an output_index: %s", got)
		}
	}
}

// TestReasoningMembers: reasoning has no members of a call.
func TestReasoningMembers(t *testing.T) {
	reply, err := readWhole([]byte(`{"id":"r","status":"completed","output":[{"type":"reasoning","id":"rs_1","call_id":"c","name":"x","arguments":"{}","summary":[],"encrypted_content":"e"}]}`), strict())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(reply.items[0].encodeAs(nil)), `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"e"}`; got != want {
		t.Errorf("found %s, want %s", got, want)
	}
}

func FuzzStream(f *testing.F) {
	f.Add(body(base()))
	for _, events := range hostile {
		f.Add(body(events()))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		reply, err := read(bytes.NewReader(b), allowing)
		again, errAgain := read(&randomReader{bytes.NewReader(b), seeded(len(b))}, allowing)
		if (err == nil) != (errAgain == nil) {
			t.Fatalf("%v, and cut %v", err, errAgain)
		}
		if err == nil && (describe(reply) != describe(again) || !slices.Equal(callsOf(reply), callsOf(again))) {
			t.Fatal("another reply when cut")
		}
	})
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(baseResponse))
	f.Fuzz(func(t *testing.T, b []byte) {
		reply, err := readWhole(b, allowing)
		if (err == nil) != (reply != nil) {
			t.Fatalf("%v, %v", reply, err)
		}
	})
}

func BenchmarkStream(b *testing.B) {
	delta := []byte(base()[6])
	stream := newReader(strict())
	for _, data := range renumbered(base()[:6]) {
		if _, err := stream.Event(nil, []byte(data)); err != nil {
			b.Fatal(err)
		}
	}
	delta = []byte(renumbered([]string{string(delta)})[0])
	b.ReportAllocs()
	b.SetBytes(int64(len(delta)))
	for b.Loop() {
		if _, err := stream.Event(nil, delta); err != nil {
			b.Fatal(err)
		}
	}
}

// TestAddsNothing: behind the terminal event, the same response and signs of life add nothing; another
// response, or an item, does.
func TestAddsNothing(t *testing.T) {
	events := base()
	last := len(events) - 1
	stream := newReader(strict())
	for i, e := range events {
		if i == last && stream.AddsNothing(nil, []byte(e)) {
			t.Error("the terminal event adds nothing before it was read")
		}
		if _, err := stream.Event(nil, []byte(e)); err != nil {
			t.Fatal(err)
		}
	}
	for data, want := range map[string]bool{
		events[last]: true,
		strings.Replace(events[last], `"sequence_number":29`, `"sequence_number":30`, 1): true,
		`{"type":"keepalive","sequence_number":30}`:                                      true,
		strings.Replace(events[last], "I look.", "I looked.", 1):                         false,
		events[15]:                      false,
		`{"type":"response.completed"}`: false,
		`{"type":"error"}`:              false,
		`[DONE]`:                        false,
	} {
		if got := stream.AddsNothing(nil, []byte(data)); got != want {
			t.Errorf("%s: %t", data, got)
		}
	}
}

// TestMessagesAtOnce: what comes of two messages at once, or of two parts of one, is told of in the order of the answer, also
// where none of them ends.
func TestMessagesAtOnce(t *testing.T) {
	added := func(at int, id string) string {
		return fmt.Sprintf(`{"type":"response.output_item.added","output_index":%d,"item":{"id":%q,"type":"message","role":"assistant","content":[]}}`, at, id)
	}
	grows := func(at, part int, text string) string {
		return fmt.Sprintf(`{"type":"response.output_text.delta","output_index":%d,"content_index":%d,"item_id":"m","delta":%q}`, at, part, text)
	}
	ends := func(at int, id string, texts ...string) string {
		var parts []string
		for _, text := range texts {
			parts = append(parts, fmt.Sprintf(`{"type":"output_text","text":%q}`, text))
		}
		return fmt.Sprintf(`{"type":"response.output_item.done","output_index":%d,"item":{"id":%q,"type":"message","role":"assistant","status":"completed","content":[%s]}}`, at, id, strings.Join(parts, ","))
	}
	end := func(status string) string {
		return fmt.Sprintf(`{"type":"response.%s","response":{"id":"resp_1","status":%q,"output":[]}}`, status, status)
	}
	begun := []string{renumbered(base()[:1])[0], added(0, "a"), added(1, "b"), grows(1, 0, "3"), grows(0, 0, "1"), grows(0, 1, "2"), grows(1, 0, "4")}
	for name, events := range map[string][]string{
		"ended in order":  append(slices.Clone(begun), ends(0, "a", "1", "2"), ends(1, "b", "34"), end("completed")),
		"ended backwards": append(slices.Clone(begun), ends(1, "b", "34"), ends(0, "a", "1", "2"), end("completed")),
		"not ended":       append(slices.Clone(begun), end("incomplete")),
	} {
		r := newReader(strict())
		var told []byte
		var open *turns.Part
		for _, data := range events {
			deltas, err := r.Event(nil, []byte(data))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for i := range deltas {
				switch d := &deltas[i]; {
				case d.Is == turns.Start && open != nil:
					t.Errorf("%s: a part begins within another", name)
				case d.Is == turns.Start:
					open = d.Part
				case d.Is == turns.Stop:
					open = nil
				case d.Is == turns.Grown:
					told = append(told, d.Part.Text[d.From:]...)
				}
			}
		}
		if err := r.End(); err != nil || string(told) != "1234" || open != nil {
			t.Errorf("%s: told of %q, %v", name, told, err)
		}
	}
}
