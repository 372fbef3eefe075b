package chat_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/identity"
	"github.com/callgate/callgate/upstream"
)

const search = `{"query":"x"}`

// TestEnforce: what passes goes to the application, whole or as a stream, by
// either protocol.
func TestEnforce(t *testing.T) {
	textCall := content(`{"tool":{"name":"web.search","arguments":` + search + `}}`)
	nativeCall := toolCalls("c1", "web_search", search)
	for name, c := range map[string]struct {
		message, more string
		rules         func(*upstream.Rules)
		text, call    string
		finish        string
	}{
		"text":                        {content("Hello 🌍"), tools("web_search"), nil, "Hello 🌍", "", "stop"},
		"text, no tools":              {content("Hello"), "", nil, "Hello", "", "stop"},
		"a native call":               {nativeCall, tools("web_search"), nil, "", "web_search" + search, "tool_calls"},
		"no arguments":                {toolCalls("c1", "time_now", ""), tools("time_now"), nil, "", "time_now{}", "tool_calls"},
		"as content":                  {nativeCall, tools("web_search"), func(r *upstream.Rules) { r.CallFormat = upstream.AsContent }, `{"tool":{"name":"web.search","arguments":` + search + `}}`, "", "stop"},
		"prose beside":                {strings.Replace(nativeCall, "null", `"Let me see."`, 1), tools("web_search"), nil, "Let me see.", "web_search" + search, "tool_calls"},
		"prose dropped":               {strings.Replace(nativeCall, "null", `"Let me see."`, 1), tools("web_search"), func(r *upstream.Rules) { r.NativeProse = upstream.Drop }, "", "web_search" + search, "tool_calls"},
		"blank beside":                {strings.Replace(nativeCall, "null", `"\n\n"`, 1), tools("web_search"), func(r *upstream.Rules) { r.NativeProse = upstream.Refuse }, "\n\n", "web_search" + search, "tool_calls"},
		"blank that passes":           {strings.Replace(nativeCall, "null", `"\n\n"`, 1), tools("web_search"), nil, "\n\n", "web_search" + search, "tool_calls"},
		"prose beside what must be":   {strings.Replace(nativeCall, "null", `"Hello"`, 1), tools("web_search") + `,"tool_choice":"required"`, nil, "Hello", "web_search" + search, "tool_calls"},
		"beside the one that must be": {strings.Replace(nativeCall, "null", `"Hello"`, 1), tools("web_search") + `,"tool_choice":{"type":"function","function":{"name":"web_search"}}`, nil, "Hello", "web_search" + search, "tool_calls"},
		"blank arguments":             {toolCalls("c1", "time_now", " \n"), tools("time_now"), nil, "", "time_now{}", "tool_calls"},
		"no id":                       {toolCalls("", "web_search", search), tools("web_search"), nil, "", "web_search" + search, "tool_calls"},
		"an empty legacy call beside": {strings.Replace(nativeCall, `"content"`, `"function_call":{"name":"","arguments":""},"content"`, 1), tools("web_search"), nil, "", "web_search" + search, "tool_calls"},
		"foreign JSON in prose":       {content(`like {"a":1}`), tools("web_search"), nil, `like {"a":1}`, "", "stop"},
		"in text":                     {textCall, tools("web_search"), textProtocol, "", "web_search" + search, "tool_calls"},
		"in text, as content":         {textCall, tools("web_search"), all(textProtocol, func(r *upstream.Rules) { r.CallFormat = upstream.AsContent }), `{"tool":{"name":"web.search","arguments":` + search + `}}`, "", "stop"},
		"in text, without tools":      {textCall, "", textProtocol, `{"tool":{"name":"web.search","arguments":` + search + `}}`, "", "stop"},
		"text in text":                {content("Hello"), tools("web_search"), textProtocol, "Hello", "", "stop"},
		"a thought is content":        {content("<think>hm</think>Hello"), tools("web_search"), textProtocol, "<think>hm</think>Hello", "", "stop"},
		"held to the end":             {content("Hello"), tools("web_search"), func(r *upstream.Rules) { r.StreamBuffer = upstream.Whole }, "Hello", "", "stop"},
		"a call that must be":         {nativeCall, tools("web_search", "time_now") + `,"tool_choice":{"type":"function","function":{"name":"web_search"}}`, nil, "", "web_search" + search, "tool_calls"},
		"one of some":                 {nativeCall, tools("web_search", "time_now") + `,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[{"type":"function","function":{"name":"web_search"}}]}}`, nil, "", "web_search" + search, "tool_calls"},
		"one call at a time, and one": {nativeCall, tools("web_search") + `,"parallel_tool_calls":false`, nil, "", "web_search" + search, "tool_calls"},
	} {
		for _, streamed := range []string{"", `"stream":true`} {
			more := strings.Trim(c.more+","+streamed, ",")
			h := open(t, inTurn(says(c.message, "stop")), plan{rules: c.rules})
			w := h.post(asks(more))
			got := reads(t, w)
			if w.Code != 200 || got.text() != c.text || got.call() != c.call || got.Choices[0].FinishReason != c.finish || got.done != (streamed != "") || got.Choices[0].Message.Role != "assistant" || got.Model != "model-1-0" || got.ID != "chatcmpl-1" {
				t.Errorf("%s, %s: %d %s", name, streamed, w.Code, w.Body)
			}
			records := h.settled(t)
			if c.call != "" || strings.HasPrefix(c.text, `{"tool"`) {
				if len(records) == 0 || records[len(records)-1] != "outcome enforce tool_call handed_over" || w.Header().Get("Callgate-Call-Id") == "" && c.text != "Let me see." {
					t.Errorf("%s, %s: %v, %v", name, streamed, records, w.Header())
				}
			} else if len(records) != 1 || records[0] != "decision enforce text" {
				t.Errorf("%s, %s: %v", name, streamed, records)
			}
		}
	}
}

// TestGivenIDs: calls that the model sent without an id get one each, for the application and for
// the model that reads of their results.
func TestGivenIDs(t *testing.T) {
	calls := toolCalls("", "time_now", "{}", "c1", "time_now", "{}", "", "time_now", "{}")
	for _, streamed := range []string{"", `"stream":true`} {
		h := open(t, inTurn(says(calls, "stop")), plan{})
		got := reads(t, h.post(asks(strings.Trim(tools("time_now")+","+streamed, ","))))
		ids := map[string]bool{}
		for _, c := range got.Choices[0].Message.ToolCalls {
			ids[c.ID] = true
		}
		if len(ids) != 3 || ids[""] || !ids["c1"] {
			t.Errorf("%s: found %v", streamed, ids)
		}
		h = open(t, inTurn(says(calls, "stop"), says(content("done"), "stop")), plan{rules: orchestrate})
		if got := reads(t, h.post(asks(streamed))); got.text() != "done" {
			t.Fatalf("%s: %+v", streamed, got)
		}
		var asked struct {
			Messages []struct {
				ToolCallID string `json:"tool_call_id"`
				ToolCalls  []struct {
					ID string
				} `json:"tool_calls"`
			}
		}
		if err := json.Unmarshal(h.model.body(t, 1), &asked); err != nil || len(asked.Messages) < 4 {
			t.Fatalf("%v: %s", err, h.model.body(t, 1))
		}
		last := asked.Messages[len(asked.Messages)-4:]
		for i, call := range last[0].ToolCalls {
			if call.ID == "" || call.ID != last[1+i].ToolCallID {
				t.Errorf("%s: the model is told %+v", streamed, asked)
			}
		}
	}
}

// TestStopped: an answer of nothing that the provider has cut off or filtered, and one of nothing but
// thoughts or pictures, is passed on as it is. The model is not asked again.
func TestStopped(t *testing.T) {
	const thought, picture = `"reasoning_content":"hm"`, `"images":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]`
	for name, c := range map[string]struct {
		message, finish, content string
		more                     string
	}{
		"filtered":             {`{"content":null}`, "content_filter", `null`, ""},
		"cut":                  {`{"content":""}`, "length", `""`, ""},
		"cut, blank":           {`{"content":"\n"}`, "length", `"\n"`, ""},
		"cut in a thought":     {`{"content":"",` + thought + `}`, "length", `""`, thought},
		"only a thought":       {`{"content":null,` + thought + `}`, "stop", `null`, thought},
		"thoughts in details":  {`{"content":"","reasoning_details":[{"type":"reasoning.text","text":"hm"}]}`, "stop", `""`, `"reasoning_details":[{"type":"reasoning.text","text":"hm"}]`},
		"only a picture":       {`{"content":"",` + picture + `}`, "stop", `""`, picture},
		"another provider's":   {`{"content":null}`, "SAFETY", `null`, ""},
		"for want of capacity": {`{"content":""}`, "insufficient_system_resource", `""`, ""},
	} {
		for _, p := range []plan{{}, {rules: textProtocol}, {rules: orchestrate}, {rules: func(r *upstream.Rules) { r.StreamBuffer = upstream.Whole }}, {rules: func(r *upstream.Rules) { r.Refusals = upstream.AsMessage }}} {
			for _, choice := range []string{"auto", "required"} {
				if choice == "required" && c.finish == "stop" {
					continue // there is no call, and another answer may have one
				}
				for _, streamed := range []bool{false, true} {
					answers := says(c.message, c.finish)
					if streamed {
						answers = chunks(delta(c.message[1:len(c.message)-1]), `{"index":0,"delta":{},"finish_reason":"`+c.finish+`"}`)
					}
					h := open(t, inTurn(answers), p)
					more := tools("web_search") + `,"tool_choice":"` + choice + `"`
					if streamed {
						more += `,"stream":true`
					}
					w := h.post(asks(more))
					got := reads(t, w)
					want := strings.Trim(strings.ReplaceAll(strings.ReplaceAll(c.content, `\n`, "\n"), "null", ""), `"`)
					if w.Code != 200 || h.model.times() != 1 || got.text() != want || got.Choices[0].FinishReason != c.finish || !strings.Contains(w.Body.String(), c.more) || !streamed && !strings.Contains(w.Body.String(), `"content":`+c.content) {
						t.Errorf("%s, %s, streamed %t: asked %d times, %d %s", name, choice, streamed, h.model.times(), w.Code, w.Body)
					}
					if records := strings.Join(h.settled(t), "; "); records == "" || strings.Contains(records, "refused") {
						t.Errorf("%s: %s", name, records)
					}
				}
			}
		}
	}
}

// TestRefused: what does not pass is an error in OpenAI's shape, with its code and
// what models read, and is written down.
func TestRefused(t *testing.T) {
	offered := tools("web_search", "time_now")
	call := toolCalls("c1", "web_search", search)
	for name, c := range map[string]struct {
		message, finish, more string
		rules                 func(*upstream.Rules)
		status                int
		code                  string
	}{
		"an unknown tool":         {toolCalls("c1", "web_serch", search), "stop", offered, nil, 422, "unknown_tool"},
		"the registry's name":     {toolCalls("c1", "web.search", search), "stop", offered, nil, 422, "unknown_tool"},
		"not offered":             {toolCalls("c1", "notes_label", `{"note":"n","labels":[]}`), "stop", offered, nil, 422, "unknown_tool"},
		"none offered":            {call, "stop", "", nil, 422, "unknown_tool"},
		"not permitted":           {toolCalls("c1", "files_delete", `{"path":"x"}`), "stop", tools("files_delete"), nil, 403, "permission_denied"},
		"wrong arguments":         {toolCalls("c1", "web_search", `{"query":1}`), "stop", offered, nil, 422, "wrong_type"},
		"no JSON":                 {toolCalls("c1", "web_search", `{"query":}`), "stop", offered, nil, 422, "malformed_json"},
		"twice":                   {toolCalls("c1", "web_search", `{"query":"a","query":"b"}`), "stop", offered, nil, 422, "duplicate_key"},
		"cut":                     {call, "length", offered, nil, 422, "truncated_output"},
		"filtered":                {call, "content_filter", offered, nil, 422, "truncated_output"},
		"cut, in capitals":        {call, "MAX_TOKENS", offered, nil, 422, "truncated_output"},
		"cut, for Mistral":        {call, "model_length", offered, nil, 422, "truncated_output"},
		"cut, in a text":          {content(`{"tool":{"name":"time.now","arguments":{}}}`), "max_tokens", offered, textProtocol, 422, "truncated_output"},
		"given up":                {call, "abort", offered, nil, 422, "truncated_output"},
		"malformed":               {call, "MALFORMED_FUNCTION_CALL", offered, nil, 422, "truncated_output"},
		"one of two":              {toolCalls("c1", "web_search", search, "c2", "web_search", "{}"), "stop", offered, nil, 422, "missing_argument"},
		"two at once":             {toolCalls("c1", "web_search", search, "c2", "time_now", "{}"), "stop", offered, func(r *upstream.Rules) { r.Parallel = upstream.Refuse }, 422, "multiple_calls"},
		"two, where one may be":   {toolCalls("c1", "web_search", search, "c2", "time_now", "{}"), "stop", offered + `,"parallel_tool_calls":false`, nil, 422, "multiple_calls"},
		"two as content":          {toolCalls("c1", "web_search", search, "c2", "time_now", "{}"), "stop", offered, func(r *upstream.Rules) { r.CallFormat = upstream.AsContent }, 422, "multiple_calls"},
		"prose beside":            {strings.Replace(call, "null", `"so"`, 1), "stop", offered, func(r *upstream.Rules) { r.NativeProse = upstream.Refuse }, 422, "mixed_output"},
		"prose beside content":    {strings.Replace(call, "null", `"so"`, 1), "stop", offered, func(r *upstream.Rules) { r.CallFormat = upstream.AsContent }, 422, "mixed_output"},
		"a refusal and a call":    {strings.Replace(call, `"content"`, `"refusal":"no","content"`, 1), "stop", offered, nil, 422, "mixed_output"},
		"a call in a refusal":     {`{"content":null,"refusal":"{\"tool\":{\"name\":\"time.now\",\"arguments\":{}}}"}`, "stop", offered, nil, 422, "mixed_output"},
		"the legacy call":         {`{"content":null,"function_call":{"name":"web_search","arguments":"{}"}}`, "function_call", offered, nil, 422, "foreign_call_syntax"},
		"a custom call":           {`{"content":null,"tool_calls":[{"id":"c1","type":"custom","custom":{"name":"web_search","input":"x"}}]}`, "stop", offered, nil, 422, "foreign_call_syntax"},
		"a native call in text":   {call, "stop", offered, textProtocol, 422, "foreign_call_syntax"},
		"a mark":                  {content("so <tool_call>"), "stop", offered, nil, 422, "foreign_call_syntax"},
		"a call in prose":         {content(`{"tool":{"name":"time.now","arguments":{}}}`), "stop", offered, nil, 422, "mixed_output"},
		"a call and a refusal":    {`{"content":"{\"tool\":{\"name\":\"time.now\",\"arguments\":{}}}","refusal":"no"}`, "stop", offered, textProtocol, 422, "mixed_output"},
		"nothing":                 {content(""), "stop", offered, nil, 422, "empty_output"},
		"nothing at all":          {`{"content":null}`, "stop", offered, textProtocol, 422, "empty_output"},
		"JSON in text":            {content(`so {"a":1}`), "stop", offered, textProtocol, 422, "mixed_output"},
		"calls ruled out":         {call, "stop", offered + `,"tool_choice":"none"`, nil, 422, "tool_choice_violated"},
		"that, in text":           {content(`{"tool":{"name":"time.now","arguments":{}}}`), "stop", offered + `,"tool_choice":"none"`, textProtocol, 422, "tool_choice_violated"},
		"a wrong one beside text": {strings.Replace(toolCalls("c1", "web_search", "{}"), "null", `"so"`, 1), "stop", offered + `,"tool_choice":"required"`, nil, 422, "missing_argument"},
		"only a thought":          {`{"content":"","reasoning_content":"hm"}`, "stop", offered + `,"tool_choice":"required"`, nil, 422, "tool_choice_violated"},
		"a thought and no call":   {`{"content":null,"reasoning_content":"hm"}`, "tool_calls", offered, nil, 422, "empty_output"},
		"no thought at all":       {`{"content":"","reasoning_content":"","reasoning_details":[]}`, "stop", offered, nil, 422, "empty_output"},
		"a call asked for":        {content("no"), "stop", offered + `,"tool_choice":"required"`, nil, 422, "tool_choice_violated"},
		"that, in text again":     {content("no"), "stop", offered + `,"tool_choice":"required"`, textProtocol, 422, "tool_choice_violated"},
		"another than named":      {call, "stop", offered + `,"tool_choice":{"type":"function","function":{"name":"time_now"}}`, nil, 422, "tool_choice_violated"},
		"another than that":       {content(`{"tool":{"name":"web.search","arguments":{"query":"x"}}}`), "stop", offered + `,"tool_choice":{"type":"function","function":{"name":"time_now"}}`, textProtocol, 422, "tool_choice_violated"},
		"text instead":            {content("no"), "stop", offered + `,"tool_choice":{"type":"function","function":{"name":"time_now"}}`, nil, 422, "tool_choice_violated"},
		"none of some":            {call, "stop", offered + `,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"time_now"}}]}}`, nil, 422, "tool_choice_violated"},
		"ids alike":               {toolCalls("c1", "web_search", search, "c1", "time_now", "{}"), "stop", offered, nil, 502, "upstream_unavailable"},
		"an id with a space":      {toolCalls("c 1", "web_search", search), "stop", offered, nil, 502, "upstream_unavailable"},
		"in text, not permitted":  {content(`{"tool":{"name":"files.delete","arguments":{"path":"x"}}}`), "stop", tools("files_delete"), textProtocol, 403, "permission_denied"},
		"in text, not offered":    {content(`{"tool":{"name":"notes.label","arguments":{"note":"n","labels":[]}}}`), "stop", offered, textProtocol, 422, "unknown_tool"},
	} {
		for _, streamed := range []string{"", `"stream":true`} {
			if name == "ids alike" && streamed != "" {
				continue // a stream continues the call of an id
			}
			h := open(t, inTurn(says(c.message, c.finish)), plan{rules: all(noRepairs, func(r *upstream.Rules) {
				if c.rules != nil {
					c.rules(r)
				}
			})})
			w := h.post(asks(strings.Trim(c.more+","+streamed, ",")))
			got := reads(t, w)
			status := w.Code
			if streamed != "" && w.Code == 200 { // some text was shown before
				status = c.status
			}
			if status != c.status || got.Error.Code != c.code || got.Error.Message == "" || got.Error.Type == "" || got.done || len(got.Choices) > 0 && got.Choices[0].FinishReason != "" || !strings.Contains(string(got.Error.Callgate), `"code":"`+c.code+`"`) || h.model.times() != 1 {
				t.Errorf("%s, %s: %d %s", name, streamed, w.Code, w.Body)
			}
			if streamed == "" && w.Header().Get("X-Should-Retry") != "false" && c.status < 500 {
				t.Errorf("%s: the client may send it again: %v", name, w.Header())
			}
			for _, record := range h.settled(t) {
				if !strings.HasPrefix(record, "decision enforce refused") {
					t.Errorf("%s, %s: the journal has %q", name, streamed, record)
				}
			}
			if len(h.Journal.Lines()) == 0 {
				t.Errorf("%s, %s: the journal is empty", name, streamed)
			}
		}
	}
}

// TestChoices: each of n choices is judged, and one that is refused is the answer.
func TestChoices(t *testing.T) {
	good, bad := content("one"), content("so <tool_call>")
	for _, streamed := range []string{"", `,"stream":true`} {
		h := open(t, inTurn(saysMany("stop", good, content("two"))), plan{})
		if got := reads(t, h.post(asks(`"n":2`+streamed))); len(got.Choices) != 2 || got.Choices[1].Message.Content != "two" {
			t.Errorf("%+v", got)
		}
		h = open(t, inTurn(saysMany("stop", good, bad)), plan{})
		if got := reads(t, h.post(asks(`"n":2`+streamed))); got.Error.Code != "foreign_call_syntax" || h.model.times() != 1 ||
			strings.Contains(got.Error.Message, "stream_buffer") { // which would not help: of several, none is repaired
			t.Errorf("%+v, asked %d times", got, h.model.times())
		}
		h = open(t, inTurn(saysMany("stop", good, good)), plan{})
		if got := reads(t, h.post(asks(`"n":1`+streamed))); got.Error.Code != "upstream_unavailable" || len(got.Choices) > 1 {
			t.Errorf("more than asked for: %+v", got)
		}
	}
	h := open(t, inTurn(says(good, "stop")), plan{})
	if w := h.post(asks(`"n":2`), "Callgate-Mode", "orchestrate"); w.Code != 400 || reads(t, w).Error.Param != "n" {
		t.Errorf("a run of two: %d %s", w.Code, w.Body)
	}
}

// TestRepair: a refused completion goes back to the model with what is wrong with
// it, so many times in a row; then its refusal is the answer.
func TestRepair(t *testing.T) {
	bad := toolCalls("c1", "web_search", `{"query":1}`)
	good := toolCalls("c2", "web_search", search)
	for _, streamed := range []string{"", `,"stream":true`} {
		h := open(t, inTurn(says(bad, "stop"), says(bad, "stop"), says(good, "stop")), plan{})
		w := h.post(asks(tools("web_search") + streamed))
		if got := reads(t, w); got.call() != "web_search"+search || streamed == "" && got.Usage["total_tokens"] != 45.0 || streamed == "" && got.Usage["details"].(map[string]any)["cached"] != 9.0 {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		last := string(h.model.body(t, 2))
		if strings.Count(last, `"role":"tool"`) != 2 || strings.Count(last, `\"code\":\"wrong_type\"`) < 2 || !strings.Contains(last, `"tool_call_id":"c1"`) || !strings.Contains(last, `{\"query\":1}`) {
			t.Errorf("the model was told %s", last)
		}
		h = open(t, inTurn(says(bad, "stop")), plan{})
		w = h.post(asks(tools("web_search") + streamed))
		if got := reads(t, w); w.Code != 422 || got.Error.Code != "wrong_type" || h.model.times() != 3 || w.Header().Get("X-Should-Retry") != "false" || w.Header().Get("Callgate-Call-Id") == "" {
			t.Errorf("%d %s, asked %d times", w.Code, w.Body, h.model.times())
		}
		trace := ""
		for _, r := range h.Journal.Records() {
			if trace != "" && r.TraceID != trace || r.TraceID == "" {
				t.Errorf("the attempts are of the traces %s and %s", trace, r.TraceID)
			}
			trace = r.TraceID
		}
		if len(h.Journal.Records()) != 3 {
			t.Errorf("the journal has %v", h.Journal.Lines())
		}
	}
}

// TestRepairShapes: how a refused completion stands in the history.
func TestRepairShapes(t *testing.T) {
	for name, c := range map[string]struct {
		message string
		rules   func(*upstream.Rules)
		want    []string
		never   string
	}{
		"arguments that others cannot read": {toolCalls("c1", "time_now", `{"a":`), nil, []string{`"arguments":"{}"`, `"tool_call_id":"c1"`, "malformed_json"}, `{\"a\":"`},
		"text":                              {content("so <tool_call>"), nil, []string{`{"role":"assistant","content":"so <tool_call>"},{"role":"user","content":"{\"tool_result\":{\"tool\":null,`}, `"role":"tool"`},
		"nothing":                           {content(""), nil, []string{`{"role":"user","content":"{\"tool_result\"`, "empty_output"}, `"role":"assistant"`},
		"a custom call":                     {`{"content":"x","tool_calls":[{"id":"c1","type":"custom","custom":{"name":"y","input":"x"}}]}`, nil, []string{`{"role":"assistant","content":"x"},{"role":"user","content":"{\"tool_result\"`, "foreign_call_syntax"}, `"tool_calls":[`},
		"two, of which one is wrong":        {toolCalls("c1", "time_now", "{}", "c2", "web_search", "{}"), nil, []string{`"tool_call_id":"c1"`, `"tool_call_id":"c2"`, `{\"tool\":\"time.now\"`, "missing_argument"}, ""},
		"in text":                           {content(`{"tool":{"name":"web.search","arguments":{}}}`), textProtocol, []string{`{"role":"assistant","content":"{\"tool\":{\"name\":\"web.search\",\"arguments\":{}}}"},{"role":"user","content":"{\"tool_result\":{\"tool\":\"web.search\",`}, `"role":"tool"`},
	} {
		h := open(t, inTurn(says(c.message, "stop"), says(content("done"), "stop")), plan{rules: c.rules})
		if w := h.post(asks(tools("time_now", "web_search"))); w.Code != 200 || reads(t, w).text() != "done" {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
			continue
		}
		sent := string(h.model.body(t, 1))
		for _, want := range c.want {
			if !strings.Contains(sent, want) {
				t.Errorf("%s: %s is not in %s", name, want, sent)
			}
		}
		if c.never != "" && strings.Contains(sent, c.never) {
			t.Errorf("%s: %s is in %s", name, c.never, sent)
		}
	}
}

// TestCut: text that was cut stays text, and says so.
func TestCut(t *testing.T) {
	for _, rules := range []func(*upstream.Rules){nil, textProtocol} {
		for _, streamed := range []string{"", `"stream":true`} {
			h := open(t, inTurn(says(content("Hel"), "length")), plan{rules: rules})
			if got := reads(t, h.post(asks(streamed))); got.text() != "Hel" || got.Choices[0].FinishReason != "length" {
				t.Errorf("%s: %+v", streamed, got)
			}
		}
	}
}

// TestCutCall: the refusal of a call whose answer ended for a reason of the provider names that reason, whole and streamed, also
// behind a text that was sent.
func TestCutCall(t *testing.T) {
	beside := strings.Replace(toolCalls("c1", "time_now", "{}"), `"content":null`, `"content":"I look."`, 1)
	for _, message := range []string{toolCalls("c1", "time_now", "{}"), beside} {
		for _, streamed := range []string{"", `"stream":true,`} {
			for reason, rules := range map[string]func(*upstream.Rules){"abort, which does not say": noRepairs, "SAFETY: a filter": nil} {
				word := reason[:strings.IndexAny(reason, ",:")]
				w := open(t, inTurn(says(message, word)), plan{rules: rules}).post(asks(streamed + tools("time_now")))
				if got := reads(t, w); got.Error.Code != "truncated_output" || !strings.Contains(w.Body.String(), "the finish_reason "+reason) ||
					strings.Contains(w.Body.String(), "stream_buffer") && rules == nil {
					t.Errorf("%.40s, %s, %s: %s", message, streamed, word, w.Body)
				}
			}
		}
	}
}

// TestRefusalOfTheModel: what a model will not do is shown as it said it.
func TestRefusalOfTheModel(t *testing.T) {
	for _, rules := range []func(*upstream.Rules){nil, textProtocol} {
		for _, streamed := range []string{"", `"stream":true`} {
			h := open(t, inTurn(says(`{"role":"assistant","content":null,"refusal":"I will not."}`, "stop")), plan{rules: rules})
			if got := reads(t, h.post(asks(streamed))); got.text() != "" || got.Choices[0].Message.Refusal != "I will not." || len(h.Journal.Lines()) != 1 {
				t.Errorf("%s: %+v, %v", streamed, got, h.Journal.Lines())
			}
		}
	}
}

// TestClosed: a missing or failing part refuses, and nothing is executed.
func TestClosed(t *testing.T) {
	call := says(toolCalls("c1", "time_now", "{}"), "stop")
	for name, c := range map[string]struct {
		change func(*gateway.Config, *calls.Deps)
		model  func(http.ResponseWriter, *http.Request)
		mode   string
		status int
		code   string
	}{
		"no journal, text":   {func(_ *gateway.Config, p *calls.Deps) { p.Journal = nil }, says(content("hi"), "stop"), "enforce", 503, "audit_unavailable"},
		"no journal, a call": {func(_ *gateway.Config, p *calls.Deps) { p.Journal = nil }, call, "enforce", 503, "audit_unavailable"},
		"no journal, a run":  {func(_ *gateway.Config, p *calls.Deps) { p.Journal = nil }, call, "orchestrate", 503, "audit_unavailable"},
		"no store":           {func(_ *gateway.Config, p *calls.Deps) { p.Store = nil }, call, "orchestrate", 503, "store_unavailable"},
		"no limiter":         {func(_ *gateway.Config, p *calls.Deps) { p.Limiter = nil }, call, "enforce", 503, "limiter_unavailable"},
		"who panics":         {func(s *gateway.Config, _ *calls.Deps) { s.Identity = broken{} }, call, "enforce", 500, "internal"},
	} {
		for _, streamed := range []string{"", `"stream":true,`} {
			h := open(t, inTurn(c.model), plan{state: c.change})
			w := h.post(asks(streamed+tools("time_now")), "Callgate-Mode", c.mode)
			got := reads(t, w)
			if got.Error.Code != c.code || w.Code != c.status && !(streamed != "" && w.Code == 200) || got.done || got.call() != "" || h.model.times() > 1 || strings.Contains(w.Body.String(), "broken") {
				t.Errorf("%s, %s: %d %s; asked %d times", name, streamed, w.Code, w.Body, h.model.times())
			}
		}
	}
}

// broken panics at every request.
type broken struct{}

func (broken) Authenticate(string) *identity.Principal { panic("broken") }
