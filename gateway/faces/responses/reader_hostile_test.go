package responses

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/callgate/callgate/upstream"
)

// between are the events of a stream that has no indexes, and lists the items that have ended in it.
func between(events ...string) func() []string {
	return func() []string {
		var items []string
		for _, data := range events {
			if item, ends := strings.CutPrefix(data, `{"type":"response.output_item.done","item":`); ends {
				items = append(items, strings.TrimSuffix(item, "}"))
			}
		}
		all := append([]string{`{"type":"response.created","response":{"id":"resp_1","status":"in_progress"}}`}, events...)
		return append(all, `{"type":"response.completed","response":{"id":"resp_1","status":"completed","output":[`+strings.Join(items, ",")+`]}}`)
	}
}

func itemBegins(item string) string {
	return `{"type":"response.output_item.added","item":` + item + `}`
}

func itemEnds(item string) string { return `{"type":"response.output_item.done","item":` + item + `}` }

func namedCall(callID, name, more string) string {
	return `{"call_id":"` + callID + `","type":"function_call","name":"` + name + `"` + more + `}`
}

func argumentsOf(itemID, piece string) string {
	return `{"type":"response.function_call_arguments.delta","item_id":"` + itemID + `","delta":"` + piece + `"}`
}

// withoutArguments is the base stream, whose function_call has none, with other events of it.
func withoutArguments(of ...string) func() []string {
	return func() []string {
		e := base()
		for _, at := range []int{15, 29} {
			edited(e, at, `"arguments":"{\"a\":1}"`, `"arguments":""`)
		}
		return slices.Concat(e[:12], of, e[15:])
	}
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
	"another command at the end":        replaced(29, `ls -a`, `rm -r`),
	"another operation at the end":      replaced(29, `"path":"a"`, `"path":"b"`),
	"another input at the end":          replaced(29, `SELECT 1`, `DROP 1`),
	"another text at the end":           replaced(29, `I look.`, `I took.`),
	"items of the end in another order": replaced(29, callItem+`,`+shellItem, shellItem+`,`+callItem),
	"an output that is no list":         replaced(29, `"output":[`, `"output":{"x":[`),
	"a text in the output":              replaced(29, reasoningItem, `"x"`),
	"an unknown item in the end":        replaced(29, customItem+`]`, customItem+`,{"type":"new_call","id":"n_1"}]`),
	"a hosted item in the end":          replaced(29, customItem+`]`, customItem+`,{"type":"web_search_call","id":"n_1"}]`),
	"usage that is text":                replaced(29, `"usage":{`, `"usage":"{`),
	// Indexes, numbers and names.
	"an index that jumps":   replaced(11, `"output_index":2`, `"output_index":3`),
	"an index that stands":  replaced(11, `"output_index":2`, `"output_index":1`),
	"a negative index":      replaced(11, `"output_index":2`, `"output_index":-2`),
	"an index with a point": replaced(11, `"output_index":2`, `"output_index":2.0`),
	"an index that is text": replaced(11, `"output_index":2`, `"output_index":"2"`),
	"a huge index":          replaced(11, `"output_index":2`, `"output_index":99999999999999999999`),
	"no index (RS-47)":      replaced(11, `"output_index":2,`, ``),
	"no index and no id of a delta": func() []string { // while two items are open
		e := replaced(12, `"output_index":2,"item_id":"fc_1",`, ``)()
		return renumbered(append(slices.Delete(e[:13:13], 10, 11), append([]string{base()[10]}, e[13:]...)...))
	},
	"no index, and an id of no item": replaced(12, `"output_index":2,"item_id":"fc_1"`, `"item_id":"fc_9"`),
	"no index, and ids of two items": replaced(15, `"output_index":2,"item":{"id":"fc_1"`, `"item":{"id":"msg_1"`),
	"no indexes, and a call that the end leaves out": func() []string {
		return indexless(replaced(29, baseResponse, `{"id":"resp_1","status":"completed","output":[]}`)())
	},
	"no indexes, and a delta of another call": func() []string {
		e := indexless(base())
		e[16], e[26] = e[25], strings.Replace(e[26], `"item_id":"ctc_1"`, `"item_id":"fc_1"`, 1) // fc_1 has not ended
		return slices.Concat(e[:15], e[16:17], e[26:27], e[15:16], e[29:])
	},
	"no indexes, and arguments with two ids": between(itemBegins(`{"type":"function_call","name":"read"}`),
		argumentsOf("x1", `{\"a\"`), argumentsOf("x2", `:1}`), itemEnds(namedCall("c1", "read", ""))),
	"no indexes, and arguments of a call that comes later": between(itemBegins(namedCall("c1", "read", "")), argumentsOf("c2", `{\"a\":1}`),
		itemBegins(namedCall("c2", "write", "")), itemEnds(namedCall("c1", "read", "")), itemEnds(namedCall("c2", "write", `,"arguments":"{\"a\":1}"`))),
	"no indexes, and arguments of a call that never comes": between(itemBegins(namedCall("c1", "read", "")), argumentsOf("c2", `{\"a\":1}`),
		itemEnds(namedCall("c1", "read", ""))),
	"no indexes, and arguments before the call_id of another call": between(itemBegins(`{"type":"function_call","name":"read"}`), argumentsOf("c2", `{\"a\":1}`),
		itemBegins(namedCall("c2", "write", "")), itemEnds(namedCall("c2", "write", "")), itemEnds(`{"type":"function_call","name":"read"}`)),
	"no indexes, and arguments before the id of another call": between(itemBegins(`{"type":"function_call","name":"read"}`), argumentsOf("f2", `{\"a\":1}`),
		itemEnds(`{"type":"function_call","name":"read"}`), itemEnds(`{"id":"f2",`+namedCall("c2", "write", "")[1:])),
	// Arguments that stand in another member.
	"arguments beside a delta that is null": withoutArguments(`{"type":"response.function_call_arguments.delta","output_index":2,"delta":null,"partial_json":"{\"a\":1}"}`),
	"arguments beside an empty delta":       withoutArguments(`{"type":"response.function_call_arguments.delta","output_index":2,"delta":"","arguments":"{\"a\":1}"}`),
	"arguments beside no arguments":         withoutArguments(`{"type":"response.function_call_arguments.done","output_index":2,"arguments":"","input":"{\"a\":1}"}`),
	"a piece of arguments in another member": func() []string {
		return renumbered(inserted(13, `{"type":"response.function_call_arguments.delta","output_index":2,"delta":null,"partial_json":"x"}`)())
	},
	"arguments beside an item that ends":   func() []string { return edited(withoutArguments()(), 12, `"item":`, `"arguments":"{\"a\":1}","item":`) },
	"arguments beside an item that begins": func() []string { return edited(withoutArguments()(), 11, `"item":`, `"parameters":{"a":1},"item":`) },
	"arguments within the caller of an item": func() []string {
		return edited(withoutArguments()(), 12, `"name":`, `"caller":{"type":"direct","arguments":"{\"a\":1}"},"name":`)
	},
	"a delta of an item that is not there": replaced(12, `"output_index":2`, `"output_index":7`),
	"a delta of another item":              replaced(12, `"output_index":2`, `"output_index":1`),
	"a name that is not the type":          func() []string { return []string{"{}"} },
	"no type":                              replaced(12, `"type":"response.function_call_arguments.delta",`, ``),
	"a type that is no text":               replaced(12, `"type":"response.function_call_arguments.delta"`, `"type":7`),
	"an unknown event":                     inserted(12, `{"type":"response.new.thing"}`),
	"an unknown event of a call":           inserted(12, `{"type":"response.new.thing","output_index":2}`),
	"an event of reasoning about a call":   inserted(12, `{"type":"response.reasoning_text.delta","output_index":2,"delta":"x"}`),
	"an event of a call about a message":   inserted(7, `{"type":"response.function_call_arguments.delta","output_index":1,"delta":"x"}`),
	"an item within another event":         inserted(3, `{"type":"response.reasoning_text.delta","output_index":0,"item":`+callItem+`}`),
	"a response within another event":      inserted(3, `{"type":"response.reasoning_text.delta","output_index":0,"response":`+baseResponse+`}`),
	"a number that falls (RS-45)":          replaced(12, `"sequence_number":12`, `"sequence_number":3`),
	"a number that stands (RS-45)":         replaced(13, `"sequence_number":13`, `"sequence_number":12`),
	// Items.
	"a beginning of an item twice":           func() []string { return renumbered(inserted(12, base()[11])()) },
	"an end of an item twice":                func() []string { return renumbered(inserted(16, base()[15])()) },
	"an end that is not of the next item":    func() []string { return deleted(7, 15)() },
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
	"a call_id that comes late and is another's": func() []string {
		e := replaced(11, `"call_id":"call_1",`, ``)()
		e[15] = strings.Replace(e[15], `call_1`, `call_4`, 1)
		e[29] = strings.Replace(e[29], `"output":[`+reasoningItem+`,`+messageItem+`,`+callItem+`,`+shellItem+`,`+patchItem+`,`+customItem+`]`, `"output":[]`, 1)
		return e
	},
	"a call_id with a quote":                  replaced(11, `"call_id":"call_1"`, `"call_id":"call\"1"`),
	"a name without the namespace at the end": replaced(15, `"name":"read"`, `"name":"","namespace":"x"`),
	"a name that changes":                     replaced(15, `"name":"read"`, `"name":"write"`),
	"a namespace that changes":                replaced(15, `"name":"read"`, `"name":"read","namespace":"x"`),
	"a name of a shell call":                  replaced(16, `"call_id":"call_2"`, `"call_id":"call_2","name":"x"`),
	"an async call":                           replaced(11, `"name":"read"`, `"name":"read","async":true`),
	"a call by a program":                     replaced(11, `"name":"read"`, `"name":"read","caller":{"type":"program","caller_id":"p"}`),
	"a call by nobody":                        replaced(11, `"name":"read"`, `"name":"read","caller":{}`),
	// Places of a call.
	"arguments that differ in .done":    replaced(14, `{\"a\":1}`, `{\"a\":2}`),
	"arguments that differ in the item": replaced(15, `{\"a\":1}`, `{\"a\":2}`),
	"other arguments in the item":       replaced(15, `{\"a\":1}`, `{\"a\":10}`),
	"none behind those in the first place": func() []string {
		e := replaced(11, `"arguments":""`, `"arguments":"{\"a\":1}"`)()
		e[15], e[29] = strings.Replace(e[15], `{\"a\":1}`, ``, 1), strings.Replace(e[29], `{\"a\":1}`, ``, 1)
		return slices.Delete(e, 12, 15)
	},
	"calls in a message":                replaced(10, `"type":"message"`, `"type":"message","tool_calls":[{"name":"read"}]`),
	"calls in an event":                 replaced(6, `"delta"`, `"tool_calls":[{"name":"read"}],"delta"`),
	"calls in the reply":                replaced(29, `"object":"response"`, `"object":"response","tool_calls":[{"name":"read"}]`),
	"calls in a part":                   replaced(9, `"text":"I look."`, `"text":"I look.","function_call":{"name":"read"}`),
	"other arguments before the deltas": replaced(11, `"arguments":""`, `"arguments":"{\"b\""`),
	"arguments that the deltas go on from": func() []string {
		return slices.Delete(replaced(11, `"arguments":""`, `"arguments":"{\"a\""`)(), 12, 13)
	},
	"another name in the end of arguments": replaced(14, `"arguments"`, `"name":"write","arguments"`),
	"another call in a piece of arguments": replaced(12, `"delta"`, `"call_id":"call_4","delta"`),
	"an index of another item and an id":   replaced(26, `"output_index":5`, `"output_index":2`),
	"a delta after the arguments":          func() []string { return renumbered(inserted(15, base()[13])()) },
	"a delta that is no text":              replaced(12, `"delta":"{\"a\""`, `"delta":{"a":1}`),
	"a delta that is missing":              deleted(12, 13),
	"a delta twice":                        func() []string { return renumbered(inserted(13, base()[12])()) },
	"deltas that change places":            func() []string { e := base(); e[12], e[13] = e[13], e[12]; return renumbered(e) },
	"a command that differs in .done":      replaced(19, `ls -a`, `rm -r`),
	"a command that differs in the item":   replaced(20, `ls -a`, `rm -r`),
	"a command more in the item":           replaced(20, `["ls -a"]`, `["ls -a","rm -r"]`),
	"a command that the item lacks":        replaced(20, `["ls -a"]`, `[]`),
	"a command with a far index":           replaced(17, `"command_index":0`, `"command_index":5`),
	"a command that begins twice":          func() []string { return renumbered(inserted(18, base()[17])()) },
	"other commands in the beginning":      replaced(16, `"commands":[]`, `"commands":["rm"]`),
	"a container at the end alone":         replaced(20, `"type":"local"`, `"type":"container_reference"`),
	"a diff that differs in .done":         replaced(23, `+x`, `+y`),
	"a diff that differs in the item":      replaced(24, `+x`, `+y`),
	"a path that differs in the item":      replaced(24, `"path":"a"`, `"path":"b"`),
	"an operation that differs":            replaced(24, `create_file`, `delete_file`),
	"an operation that is missing":         replaced(24, `"operation":{"type":"create_file","path":"a","diff":"+x"}`, `"operation":null`),
	"an input that differs in .done":       replaced(27, `SELECT 1`, `DROP 1`),
	"an input that differs in the item":    replaced(28, `SELECT 1`, `DROP 1`),
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

// TestDisguised: what is passed on unjudged, by a switch or as reasoning, holds nothing that a client
// could take for a call or a text of the model.
func TestDisguised(t *testing.T) {
	item := func(item string, events ...string) func() []string {
		return func() []string {
			added := `{"type":"response.output_item.added","output_index":0,"item":` + item + `}`
			list := append([]string{base()[0], added}, events...)
			done := strings.Replace(added, "item.added", "item.done", 1)
			end := `{"type":"response.completed","response":{"id":"resp_1","status":"completed","output":[]}}`
			return append(list, done, end)
		}
	}
	const unknown, hosted = `{"type":"new_thing","id":"n_1"}`, `{"type":"web_search_call","id":"n_1"}`
	with := func(item, more string) string { return strings.TrimSuffix(item, "}") + "," + more + "}" }
	const text, arguments = `"delta":"x"`, `"name":"read","arguments":"{}"`
	about := func(kind, more string) string {
		return `{"type":"response.` + kind + `","output_index":0,` + more + `}`
	}
	options := &upstream.Rules{Responses: upstream.ResponsesRules{UnknownItems: upstream.Pass, HostedTools: []string{"web_search"}}}
	for name, events := range map[string]func() []string{
		"an unknown item":              item(unknown, about("new_thing.delta", text)),
		"a hosted item":                item(hosted, about("web_search_call.completed", text)),
		"reasoning":                    item(reasoningItem, about("reasoning_text.delta", text)),
		"an event of no item":          item(unknown, `{"type":"response.new",`+text+`}`),
		"reasoning with parts":         item(strings.Replace(reasoningItem, `[]`, `[{"type":"summary_text","text":"x"}],"content":null`, 1)),
		"an event of unknown members":  item(unknown, about("new_thing.delta", `"kind":"x"`)),
		"an item with a list of items": item(with(unknown, `"item":[],"response":{}`)),
	} {
		if _, err := read(bytes.NewReader(body(events())), options); err != nil {
			t.Errorf("%s: %v", name, cause(err))
		}
	}
	for name, events := range map[string]func() []string{
		"a text of an unknown item":          item(unknown, about("output_text.delta", text)),
		"a refusal of an unknown item":       item(unknown, about("refusal.delta", text)),
		"a part of an unknown item":          item(unknown, about("content_part.added", `"part":{}`)),
		"arguments of an unknown item":       item(unknown, about("function_call_arguments.done", arguments)),
		"an input of an unknown item":        item(unknown, about("custom_tool_call_input.delta", text)),
		"arguments of a hosted item":         item(hosted, about("function_call_arguments.done", arguments)),
		"arguments of reasoning":             item(reasoningItem, about("function_call_arguments.done", arguments)),
		"arguments in other letters":         item(hosted, about("Function_Call_arguments.done", arguments)),
		"a text of no item":                  item(unknown, `{"type":"response.output_text.delta",`+text+`}`),
		"a command of no item":               item(unknown, `{"type":"response.shell_call_command.done","command":"rm"}`),
		"a patch of no item":                 item(unknown, `{"type":"response.apply_patch_call_operation_diff.done","diff":"x"}`),
		"a request for approval of no item":  item(unknown, `{"type":"response.mcp_approval_request.new",`+arguments+`}`),
		"a second type of an event":          item(reasoningItem, about("reasoning_text.delta", `"Type":"response.output_item.done","delta":"x"`)),
		"an item in other letters":           item(reasoningItem, about("reasoning_text.delta", `"delta":"x","ITEM":`+callItem)),
		"a response in other letters":        item(hosted, about("web_search_call.completed", `"re\u0053ponse":`+baseResponse)),
		"an error in other letters":          item(unknown, `{"type":"response.new","Error":{"message":"x"}}`),
		"a second type of an unknown item":   item(with(unknown, `"Type":"function_call",`+arguments)),
		"a second type of a hosted item":     item(with(hosted, `"Type":"function_call",`+arguments)),
		"a known type in other letters":      item(`{"type":"Function_call","id":"n_1",` + arguments + `}`),
		"a known type with a space":          item(`{"type":"function_call ","id":"n_1",` + arguments + `}`),
		"a known type with a hyphen":         item(`{"type":"custom-tool-call","id":"n_1",` + arguments + `}`),
		"a known type without an underscore": item(`{"type":"FunctionCall","id":"n_1",` + arguments + `}`),
		"a text within reasoning":            item(strings.Replace(reasoningItem, `}`, `,"content":[{"type":"output_text","text":"x"}]}`, 1)),
		"a call within the summary":          item(strings.Replace(reasoningItem, `[]`, `[`+callItem+`]`, 1)),
		"a summary of reasoning that is one": item(strings.Replace(reasoningItem, `[]`, `{"type":"summary_text"}`, 1)),
	} {
		if reply, err := read(bytes.NewReader(body(events())), options); err == nil {
			t.Errorf("%s: read, as %s", name, describe(reply))
		}
	}
}
