package responses_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/upstream/responses"
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

const baseReply = `completed  3 4
reasoning 1  {ID: Name: Namespace: ServerLabel: Payload:[] Async:false Program:false Actions:false} 
`

func TestStream(t *testing.T) {
	whole, err := responses.Read([]byte(baseResponse), responses.Options{})
	if err != nil || !strings.HasPrefix(describe(whole), baseReply) {
		t.Fatalf("%s, %v", describe(whole), cause(err))
	}
	if all := calls(whole); !slices.Equal(all, []string{`function_call call_1  read {"a":1}`, `custom_tool_call call_4  sql SELECT 1`}) {
		t.Errorf("%q", all)
	}
	if p := string(whole.Items[3].Call.Payload); p != `{"commands":["ls -a"],"timeout_ms":null}` {
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
		"an id that changes (RS-46)":              without(8, `"item_id":"msg_1"`, `"item_id":"other"`),
		"an id of a message that changes":         without(10, `"id":"msg_1"`, `"id":"msg_9"`),
		"an id of the response that changes":      without(1, `resp_1`, `resp_2`),
		"no status in the terminal event":         without(29, `"status":"completed","error"`, `"error"`),
		"arguments in the first place": func() []string {
			return slices.Delete(replaced(11, `"arguments":""`, `"arguments":"{\"a\":1}"`)(), 12, 14)
		},
		"an answer that was asked to be padded": without(6, `"delta"`, `"obfuscation":"}{","delta"`),
		"keepalive":                             inserted(12, `{"type":"keepalive","sequence_number":12}`),
	} {
		if name == "keepalive" {
			events = func() []string { return renumbered(inserted(12, `{"type":"keepalive","sequence_number":12}`)()) }
		}
		reply, err := read(bytes.NewReader(body(events())), responses.Options{})
		if err != nil {
			t.Errorf("%s: %v", name, cause(err))
		} else if describe(reply) != describe(whole) {
			t.Errorf("%s: %s", name, describe(reply))
		}
	}
}

// replaced is the base stream with an event changed; every change must find its place.
func replaced(at int, old, by string) func() []string {
	return func() []string {
		events := base()
		if !strings.Contains(events[at], old) {
			panic("nothing to replace: " + old)
		}
		events[at] = strings.Replace(events[at], old, by, 1)
		return events
	}
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

// hostile are streams of which nothing may be used.
var hostile = map[string]func() []string{
	// Beginnings and ends.
	"nothing":                          func() []string { return nil },
	"[DONE] alone":                     func() []string { return []string{"[DONE]"} },
	"no beginning":                     deleted(0, 2),
	"two beginnings":                   func() []string { return renumbered(inserted(1, base()[0])()) },
	"a second beginning after items":   func() []string { return renumbered(inserted(4, base()[0])()) },
	"a second in_progress after items": func() []string { return renumbered(inserted(4, base()[1])()) },
	"a beginning without a response":   replaced(0, `"response":{"id":"resp_1","object":"response","created_at":1,"status":"in_progress","output":[]}`, `"x":1`),
	"a call in the beginning":          replaced(0, `"output":[]`, `"output":[`+callItem+`]`),
	"a call in in_progress":            replaced(1, `"output":[]`, `"output":[`+callItem+`]`),
	"output of the beginning no list":  replaced(0, `"output":[]`, `"output":{}`),
	"a response without an id":         replaced(0, `"id":"resp_1",`, ``),
	"an id with spaces":                replaced(0, `resp_1`, `resp 1`),
	"an object that is no response":    replaced(0, `"object":"response"`, `"object":"chat.completion"`),
	"no end":                           deleted(29, 30),
	"[DONE] instead of the end":        func() []string { return append(deleted(29, 30)(), "[DONE]") },
	"[DONE] in the middle":             inserted(12, "[DONE]"),
	"[DONE] twice":                     func() []string { return append(base(), "[DONE]", "[DONE]") },
	"two ends":                         func() []string { return renumbered(append(base(), base()[29])) },
	"a call after the end":             func() []string { return renumbered(append(base(), base()[11])) },
	"anything after the end":           func() []string { return append(base(), `{"type":"keepalive"}`) },
	"an end with another status":       replaced(29, `"status":"completed","error"`, `"status":"incomplete","error"`),
	"an end in progress":               replaced(29, `"status":"completed","error"`, `"status":"in_progress","error"`),
	"an end that failed":               replaced(29, `"status":"completed","error"`, `"status":"failed","error"`),
	"an end with an error":             replaced(29, `"error":null`, `"error":{"code":"server_error","message":"x"}`),
	"an end without a response":        replaced(29, `"response":`+baseResponse, `"x":1`),
	"response.failed":                  replaced(29, `response.completed`, `response.failed`),
	"an error event":                   inserted(12, `{"type":"error","code":"x","message":"y"}`),
	"an error within an event (RS-49)": replaced(12, `"delta"`, `"error":{"code":"x"},"delta"`),
	"an item without its end":          func() []string { return replaced(29, `,`+customItem, ``)()[:30] },
	"an open item and no list": func() []string {
		e := replaced(29, baseResponse, `{"id":"resp_1","status":"completed","output":[]}`)()
		return slices.Delete(e, 28, 29)
	},
	"a call that the end leaves out": replaced(29, callItem+`,`, ``),
	"a call that the end has twice":  replaced(29, callItem, callItem+`,`+callItem),
	"a call of the end alone with a used id": func() []string {
		return slices.Delete(replaced(29, `"call_id":"call_4"`, `"call_id":"call_1"`)(), 25, 29)
	},
	"other arguments at the end":        replaced(29, `{\"a\":1}`, `{\"a\":2}`),
	"another name at the end":           replaced(29, `"name":"read"`, `"name":"write"`),
	"another call_id at the end":        replaced(29, `"call_id":"call_1"`, `"call_id":"call_9"`),
	"another command at the end":        replaced(29, `ls -a`, `rm -r`),
	"another operation at the end":      replaced(29, `"path":"a"`, `"path":"b"`),
	"another input at the end":          replaced(29, `SELECT 1`, `DROP 1`),
	"another text at the end":           replaced(29, `I look.`, `I took.`),
	"items of the end in another order": replaced(29, callItem+`,`+shellItem, shellItem+`,`+callItem),
	"an output that is no list":         replaced(29, `"output":[`, `"output":{"x":[`),
	"a text in the output":              replaced(29, reasoningItem, `"x"`),
	"an unknown item in the end":        replaced(29, customItem+`]`, customItem+`,{"type":"new_call","id":"n_1"}]`),
	"a hosted item in the end":          replaced(29, customItem+`]`, customItem+`,{"type":"web_search_call","id":"n_1"}]`),
	"usage of negative numbers":         replaced(29, `"input_tokens":3`, `"input_tokens":-3`),
	"usage that is text":                replaced(29, `"usage":{`, `"usage":"{`),
	// Indexes, numbers and names.
	"an index that jumps":                  replaced(11, `"output_index":2`, `"output_index":3`),
	"an index that stands":                 replaced(11, `"output_index":2`, `"output_index":1`),
	"a negative index":                     replaced(11, `"output_index":2`, `"output_index":-2`),
	"an index with a point":                replaced(11, `"output_index":2`, `"output_index":2.0`),
	"an index that is text":                replaced(11, `"output_index":2`, `"output_index":"2"`),
	"a huge index":                         replaced(11, `"output_index":2`, `"output_index":99999999999999999999`),
	"no index (RS-47)":                     replaced(11, `"output_index":2,`, ``),
	"no index at the end (RS-47)":          replaced(15, `"output_index":2,`, ``),
	"no index of a delta":                  replaced(12, `"output_index":2,`, ``),
	"a delta of an item that is not there": replaced(12, `"output_index":2`, `"output_index":7`),
	"a delta of another item":              replaced(12, `"output_index":2`, `"output_index":1`),
	"a number that repeats":                replaced(12, `"sequence_number":12`, `"sequence_number":11`),
	"a number that falls":                  replaced(12, `"sequence_number":12`, `"sequence_number":3`),
	"a name that is not the type":          func() []string { return []string{"{}"} },
	"no type":                              replaced(12, `"type":"response.function_call_arguments.delta",`, ``),
	"a type that is no text":               replaced(12, `"type":"response.function_call_arguments.delta"`, `"type":7`),
	"an unknown event":                     inserted(12, `{"type":"response.new.thing"}`),
	"an unknown event of a call":           inserted(12, `{"type":"response.new.thing","output_index":2}`),
	"an event of reasoning about a call":   inserted(12, `{"type":"response.reasoning_text.delta","output_index":2,"delta":"x"}`),
	"an event of a call about a message":   inserted(7, `{"type":"response.function_call_arguments.delta","output_index":1,"delta":"x"}`),
	"an item within another event":         inserted(3, `{"type":"response.reasoning_text.delta","output_index":0,"item":`+callItem+`}`),
	"a response within another event":      inserted(3, `{"type":"response.reasoning_text.delta","output_index":0,"response":`+baseResponse+`}`),
	// Items.
	"a beginning of an item twice":           func() []string { return renumbered(inserted(12, base()[11])()) },
	"an end of an item twice":                func() []string { return renumbered(inserted(16, base()[15])()) },
	"an end without a beginning":             deleted(11, 15),
	"a delta after the end of its item":      func() []string { return renumbered(inserted(16, base()[12])()) },
	"an item that is no object":              replaced(11, `"item":{`, `"item":7,"x":{`),
	"no item":                                replaced(11, `"item":`, `"thing":`),
	"an item without a type":                 replaced(11, `"type":"function_call",`, ``),
	"a type that changes":                    replaced(15, `"type":"function_call"`, `"type":"custom_tool_call","input":""`),
	"a message that becomes a call":          replaced(10, messageItem, callItem),
	"reasoning that becomes a call":          replaced(3, reasoningItem, callItem),
	"an unknown item":                        replaced(2, `"type":"reasoning"`, `"type":"new_call"`),
	"a hosted item":                          replaced(2, `"type":"reasoning"`, `"type":"mcp_call"`),
	"two items with one id":                  replaced(11, `"id":"fc_1"`, `"id":"msg_1"`),
	"two calls with one id":                  replaced(16, `"call_id":"call_2"`, `"call_id":"call_1"`),
	"an id of a call that becomes another's": replaced(15, `"id":"fc_1"`, `"id":"msg_1"`),
	"no call_id":                             replaced(11, `"call_id":"call_1",`, ``),
	"an empty call_id":                       replaced(11, `"call_id":"call_1"`, `"call_id":""`),
	"a call_id that changes":                 replaced(15, `"call_id":"call_1"`, `"call_id":"call_9"`),
	"a call_id with a quote":                 replaced(11, `"call_id":"call_1"`, `"call_id":"call\"1"`),
	"no name":                                replaced(11, `"name":"read",`, ``),
	"a name that changes":                    replaced(15, `"name":"read"`, `"name":"write"`),
	"a namespace that changes":               replaced(15, `"name":"read"`, `"name":"read","namespace":"x"`),
	"a name of a shell call":                 replaced(16, `"call_id":"call_2"`, `"call_id":"call_2","name":"x"`),
	"an async call":                          replaced(11, `"name":"read"`, `"name":"read","async":true`),
	"a call by a program":                    replaced(11, `"name":"read"`, `"name":"read","caller":{"type":"program","caller_id":"p"}`),
	"a call by nobody":                       replaced(11, `"name":"read"`, `"name":"read","caller":{}`),
	// Places of a call.
	"arguments that differ in .done":        replaced(14, `{\"a\":1}`, `{\"a\":2}`),
	"arguments that differ in the item":     replaced(15, `{\"a\":1}`, `{\"a\":2}`),
	"arguments that are longer in the item": replaced(15, `{\"a\":1}`, `{\"a\":1} `),
	"arguments that the item lacks":         replaced(15, `,"arguments":"{\"a\":1}"`, ``),
	"arguments that are an object":          replaced(15, `"{\"a\":1}"`, `{"a":1}`),
	"arguments before the deltas":           replaced(11, `"arguments":""`, `"arguments":"{\"a\":1}"`),
	"a delta after the arguments":           func() []string { return renumbered(inserted(15, base()[13])()) },
	"a delta that is no text":               replaced(12, `"delta":"{\"a\""`, `"delta":{"a":1}`),
	"a delta that is missing":               deleted(12, 13),
	"a delta twice":                         func() []string { return renumbered(inserted(13, base()[12])()) },
	"deltas that change places":             func() []string { e := base(); e[12], e[13] = e[13], e[12]; return renumbered(e) },
	"a command that differs in .done":       replaced(19, `ls -a`, `rm -r`),
	"a command that differs in the item":    replaced(20, `ls -a`, `rm -r`),
	"a command more in the item":            replaced(20, `["ls -a"]`, `["ls -a","rm -r"]`),
	"a command that the item lacks":         replaced(20, `["ls -a"]`, `[]`),
	"a command with a far index":            replaced(17, `"command_index":0`, `"command_index":5`),
	"a command that begins twice":           func() []string { return renumbered(inserted(18, base()[17])()) },
	"other commands in the beginning":       replaced(16, `"commands":[]`, `"commands":["rm"]`),
	"a container at the end alone":          replaced(20, `"type":"local"`, `"type":"container_reference"`),
	"a diff that differs in .done":          replaced(23, `+x`, `+y`),
	"a diff that differs in the item":       replaced(24, `+x`, `+y`),
	"a path that differs in the item":       replaced(24, `"path":"a"`, `"path":"b"`),
	"an operation that differs":             replaced(24, `create_file`, `delete_file`),
	"an operation that is missing":          replaced(24, `"operation":{"type":"create_file","path":"a","diff":"+x"}`, `"operation":null`),
	"an input that differs in .done":        replaced(27, `SELECT 1`, `DROP 1`),
	"an input that differs in the item":     replaced(28, `SELECT 1`, `DROP 1`),
	// Texts.
	"a text that differs in .done":    replaced(8, `I look.`, `I took.`),
	"a text that differs in its part": replaced(9, `I look.`, `I took.`),
	"a text that differs in the item": replaced(10, `I look.`, `I took.`),
	"a part that the item lacks":      replaced(10, `[{"type":"output_text","annotations":[],"text":"I look."}]`, `[]`),
	"a part that begins twice":        func() []string { return renumbered(inserted(6, base()[5])()) },
	"a text before the deltas":        replaced(5, `"text":""`, `"text":"I look."`),
	"a part of an unknown type":       replaced(5, `"type":"output_text"`, `"type":"output_call"`),
	"a part that becomes a refusal":   replaced(8, `response.output_text.done`, `response.refusal.done`),
	"a part that is both":             replaced(9, `"text":"I look."`, `"text":"I look.","refusal":"no"`),
	"a call in a message":             replaced(10, `"content":[`, `"content":[`+callItem+`,`),
	"a message of a user":             replaced(4, `"role":"assistant"`, `"role":"user"`),
	"a content that is text":          replaced(4, `"content":[]`, `"content":"x"`),
	"an annotation of no part":        inserted(5, `{"type":"response.output_text.annotation.added","output_index":1,"content_index":0,"annotation":{}}`),
	"an annotation with an item":      inserted(7, `{"type":"response.output_text.annotation.added","output_index":1,"content_index":0,"annotation":{},"item":`+callItem+`}`),
	"an annotation with a response":   inserted(7, `{"type":"response.output_text.annotation.added","output_index":1,"content_index":0,"annotation":{},"response":`+baseResponse+`}`),
	"a text in reasoning":             inserted(3, `{"type":"response.content_part.added","output_index":0,"content_index":0,"part":{"type":"output_text","text":"x"}}`),
	"a text of reasoning":             inserted(3, `{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"x"}`),
	// JSON.
	"bytes after an event":        replaced(12, `"delta":"{\"a\""}`, `"delta":"{\"a\""}{}`),
	"a name twice":                replaced(12, `"delta":"{\"a\""`, `"delta":"x","delta":"{\"a\""`),
	"a name twice by an escape":   replaced(12, `"delta":"{\"a\""`, `"d\u0065lta":"x","delta":"{\"a\""`),
	"a name twice within an item": replaced(15, `"name":"read"`, `"name":"read","name":"write"`),
	"half a surrogate":            replaced(6, `I lo`, `\ud800`),
	"bytes that are no UTF-8":     replaced(6, `I lo`, "\xff"),
	"an event that is a list":     replaced(12, `{"type"`, `[{"type"`),
	"an event that is deep":       replaced(12, `"delta"`, `"x":`+strings.Repeat("[", 200)+strings.Repeat("]", 200)+`,"delta"`),
	"an empty event":              inserted(12, ``+" "),
}

func TestHostileStreams(t *testing.T) {
	if len(hostile) < 60 {
		t.Fatal(len(hostile))
	}
	for name, events := range hostile {
		reply, err := read(bytes.NewReader(body(events())), responses.Options{})
		var refused *refusal.Error
		var failed *responses.ProviderError
		if err == nil || reply != nil {
			t.Errorf("%s: read, as %s", name, describe(reply))
		} else if !errors.As(err, &refused) && !errors.As(err, &failed) {
			t.Errorf("%s: %v", name, err)
		} else if refused != nil && refused.Code != refusal.UpstreamUnavailable {
			t.Errorf("%s: %s", name, refused.Code)
		}
	}
	// The name of an event is not believed where it contradicts the type.
	stream := responses.NewStream(responses.Options{})
	if _, err := stream.Add([]byte("response.in_progress"), []byte(base()[0])); err == nil {
		t.Error("an event under another name is read")
	}
}

// TestTruncatedStream cuts a stream at every byte: a call is never there.
func TestTruncatedStream(t *testing.T) {
	b := body(base())
	end := bytes.LastIndex(b, []byte("\n\n"))
	for cut := range end {
		if reply, err := read(bytes.NewReader(b[:cut]), responses.Options{}); err == nil || reply != nil {
			t.Fatalf("cut at byte %d: read", cut)
		}
	}
	for cut := range len(baseResponse) {
		if reply, err := responses.Read([]byte(baseResponse[:cut]), responses.Options{}); err == nil || reply != nil {
			t.Fatalf("whole, cut at byte %d: read", cut)
		}
	}
}

// TestIncomplete: an item that has not ended is not complete, and neither is the reply.
func TestIncomplete(t *testing.T) {
	events := append(base()[:13], `{"type":"response.incomplete","sequence_number":40,"response":{"id":"resp_1","status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[]}}`)
	reply, err := read(bytes.NewReader(body(events)), responses.Options{})
	if err != nil || reply.Complete() || reply.IncompleteReason != "max_output_tokens" || reply.Items[2].Complete || reply.Items[2].Done {
		t.Errorf("%+v, %v", reply, cause(err))
	}
	whole := strings.Replace(strings.Replace(baseResponse, `"status":"completed","error"`, `"status":"incomplete","error"`, 1), `"status":"completed","call_id":"call_2"`, `"status":"in_progress","call_id":"call_2"`, 1)
	reply, err = responses.Read([]byte(whole), responses.Options{})
	if err != nil || reply.Complete() || !reply.Items[2].Complete || reply.Items[3].Complete {
		t.Errorf("%+v, %v", reply, cause(err))
	}
}

// TestProviderErrors: the provider's own words are kept, but not in the text of the error.
func TestProviderErrors(t *testing.T) {
	for _, data := range []string{
		`{"type":"error","sequence_number":2,"error":{"type":"tokens","code":"rate_limit_exceeded","message":"wait"}}`,
		`{"type":"error","code":"rate_limit_exceeded","message":"wait"}`,
		`{"type":"response.failed","response":{"id":"resp_1","status":"failed","error":{"code":"rate_limit_exceeded","message":"wait"}}}`,
	} {
		_, err := read(bytes.NewReader(body(append(base()[:2], data))), responses.Options{})
		var failed *responses.ProviderError
		if !errors.As(err, &failed) || failed.Code != "rate_limit_exceeded" || failed.Message != "wait" || strings.Contains(err.Error(), "wait") {
			t.Errorf("%s: %v %+v", data, err, failed)
		}
	}
	_, err := responses.Read([]byte(`{"id":"resp_1","status":"failed","error":"no"}`), responses.Options{})
	var failed *responses.ProviderError
	if !errors.As(err, &failed) || failed.Message != "no" || failed.Refusal().Code != refusal.UpstreamUnavailable {
		t.Errorf("%v", err)
	}
}

// TestBounds: texts, items and calls of a reply are bounded.
func TestBounds(t *testing.T) {
	if _, err := read(bytes.NewReader(body(base())), responses.Options{MaxBytes: 2000}); err == nil {
		t.Error("a reply over its bound is read")
	}
	var items []string
	for i := range 1025 {
		items = append(items, fmt.Sprintf(`{"type":"reasoning","id":"rs_%d","summary":[]}`, i))
	}
	if _, err := responses.Read(fmt.Appendf(nil, `{"id":"r","status":"completed","output":[%s]}`, strings.Join(items, ",")), responses.Options{}); err == nil {
		t.Error("1,025 items are read")
	}
	items = nil
	for i := range 129 {
		items = append(items, fmt.Sprintf(`{"type":"function_call","call_id":"c_%d","name":"x","arguments":""}`, i))
	}
	if _, err := responses.Read(fmt.Appendf(nil, `{"id":"r","status":"completed","output":[%s]}`, strings.Join(items, ",")), responses.Options{}); err == nil {
		t.Error("129 calls are read")
	}
}

// TestAppendOther: an event is passed on with other numbers and without its padding.
func TestAppendOther(t *testing.T) {
	stream := responses.NewStream(responses.Options{})
	for _, data := range append(base()[:3], `{"type":"response.reasoning_summary_text.delta","obfuscation":"x","sequence_number":3,"output_index":0,"item_id":"zz","summary_index":0,"delta":"a"}`) {
		if _, err := stream.Add(nil, []byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	want := `{"sequence_number":7,"type":"response.reasoning_summary_text.delta","output_index":5,"item_id":"rs_1","summary_index":0,"delta":"a"}`
	if got := string(stream.AppendOther(nil, 7, 5, "rs_1")); got != want {
		t.Errorf("%s; expected %s", got, want)
	}
}

// TestReasoningMembers: reasoning has no members of a call.
func TestReasoningMembers(t *testing.T) {
	reply, err := responses.Read([]byte(`{"id":"r","status":"completed","output":[{"type":"reasoning","id":"rs_1","call_id":"c","name":"x","arguments":"{}","summary":[],"encrypted_content":"e"}]}`), responses.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(reply.Items[0].AppendItem(nil)), `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"e"}`; got != want {
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
		if err == nil && (describe(reply) != describe(again) || !slices.Equal(calls(reply), calls(again))) {
			t.Fatal("another reply when cut")
		}
	})
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(baseResponse))
	f.Fuzz(func(t *testing.T, b []byte) {
		reply, err := responses.Read(b, allowing)
		if (err == nil) != (reply != nil) {
			t.Fatalf("%v, %v", reply, err)
		}
	})
}

func BenchmarkStream(b *testing.B) {
	delta := []byte(base()[6])
	stream := responses.NewStream(responses.Options{MaxBytes: 1 << 40})
	for _, data := range renumbered(base()[:6]) {
		if _, err := stream.Add(nil, []byte(data)); err != nil {
			b.Fatal(err)
		}
	}
	delta = []byte(renumbered([]string{string(delta)})[0])
	b.ReportAllocs()
	b.SetBytes(int64(len(delta)))
	for b.Loop() {
		if _, err := stream.Add(nil, delta); err != nil {
			b.Fatal(err)
		}
	}
}
