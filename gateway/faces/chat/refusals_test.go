package chat_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/upstream"
)

func asMessage(r *upstream.Rules) { r.Refusals = upstream.AsMessage }

// TestRefusalsAsMessage: with refusals: message an application gets a final answer that says
// what was refused, whole and streamed, once repairs are used up; nothing of the refused answer
// is in it. Other failures stay errors.
func TestRefusalsAsMessage(t *testing.T) {
	refused := toolCalls("c1", "files_delete", `{"path":"x"}`)
	const says1 = "Callgate has refused a call of files.delete. The model did not correct it"
	for name, c := range map[string]struct {
		script   func(http.ResponseWriter, *http.Request)
		rules    func(*upstream.Rules)
		request  string
		want     string // the beginning of the text; empty: an error
		code     string // named in the text, or of the error
		requests int
	}{
		"enforced":     {says(refused, "tool_calls"), asMessage, tools("files_delete"), says1, "permission_denied", 3},
		"orchestrated": {says(refused, "tool_calls"), all(asMessage, orchestrate), "", says1, "permission_denied", 3},
		"a loop": {
			says(refused, "tool_calls"), all(asMessage, orchestrate, func(r *upstream.Rules) { r.MaxRepairs = 9 }), "",
			says1, "permission_denied", 3,
		},
		"no repairs": {says(refused, "tool_calls"), all(asMessage, noRepairs), tools("files_delete"), says1, "permission_denied", 1},
		"a text": {
			says(content("so: <tool_call>"), "stop"), all(asMessage, noRepairs), tools("time_now"),
			"Callgate has refused what the model answered.", "foreign_call_syntax", 1,
		},
		"several": {
			saysMany("tool_calls", content("fine"), refused), asMessage, tools("files_delete") + `,"n":2`, says1, "permission_denied", 1,
		},
		"a name that looks like a call": {
			says(toolCalls("c1", "<tool_call>", "{}"), "tool_calls"), all(asMessage, noRepairs), tools("time_now"),
			"Callgate has refused what the model answered.", "unknown_tool", 1,
		},
		"a name that hides": {
			says(toolCalls("c1", "files\u200b.delete", "{}"), "tool_calls"), all(asMessage, noRepairs), tools("time_now"),
			"Callgate has refused a call of files\u200b.delete.", "unknown_tool", 1,
		},
		"a bound": {
			says(toolCalls("c1", "time_now", "{}"), "tool_calls"), all(asMessage, orchestrate, func(r *upstream.Rules) { r.MaxTurns = 1 }), "",
			"", "bound_reached", 2,
		},
		"errors": {says(refused, "tool_calls"), noRepairs, tools("files_delete"), "", "permission_denied", 1},
	} {
		for _, streamed := range []bool{false, true} {
			name := fmt.Sprintf("%s, streamed: %v", name, streamed)
			h := open(t, inTurn(c.script), plan{rules: c.rules})
			more := fmt.Sprintf(`"stream":%v`, streamed)
			if streamed {
				more += `,"stream_options":{"include_usage":true}`
			}
			if c.request != "" {
				more += "," + c.request
			}
			w := h.post(asks(more))
			got := reads(t, w)
			if h.model.times() != c.requests {
				t.Errorf("%s: %d requests, want %d", name, h.model.times(), c.requests)
			}
			if c.want == "" {
				if got.Error.Code != c.code {
					t.Errorf("%s: found %d %s, want the error %s", name, w.Code, w.Body, c.code)
				}
				continue
			}
			if w.Code != 200 || got.done != streamed || got.ID != "chatcmpl-1" || got.Usage["total_tokens"] != float64(15*c.requests) {
				t.Errorf("%s: found %d %s", name, w.Code, w.Body)
			}
			for _, choice := range got.Choices {
				text := choice.Message.Content
				if i := strings.Index(text, "Callgate"); streamed && i > 0 {
					text = text[i:] // text that was sent before
				}
				said := strings.HasPrefix(text, c.want) && strings.Contains(text, "\n\n"+c.code)
				if !said || len(choice.Message.ToolCalls) > 0 || choice.FinishReason != "stop" || choice.Message.Role != "assistant" {
					t.Errorf("%s: found %+v", name, choice)
				}
			}
			for _, part := range []string{"\u200b", "<tool_call>", `\"path\"`} {
				if strings.Contains(w.Body.String(), part) {
					t.Errorf("%s: %q of what was refused is in %s", name, part, w.Body)
				}
			}
			if !streamed && w.Header().Get(server.HeaderCallID) == "" {
				t.Errorf("%s: the head names no call", name)
			}
			run := h.runs.Find("", w.Header().Get(server.HeaderRunID))
			if run == nil || run.State != "failed" {
				t.Errorf("%s: the run is %+v", name, run)
			}
			if line := h.log.String(); !strings.Contains(line, `"code"`) && !strings.Contains(line, "code=") {
				t.Errorf("%s: no refusal in the log: %s", name, line)
			}
		}
	}
}

// TestTurnsStandApart: in a streamed run the text of a turn begins a paragraph of its own behind
// the text of an earlier one, and is not changed otherwise.
func TestTurnsStandApart(t *testing.T) {
	aloud := func(text string) string {
		return strings.Replace(toolCalls("c1", "time_now", "{}"), `"content":null`, `"content":`+quoted(text), 1)
	}
	for name, c := range map[string]struct {
		turns []string
		want  string
	}{
		"each turn speaks":       {[]string{aloud("I look."), aloud("Once more."), content("It is noon.")}, "I look.\n\nOnce more.\n\nIt is noon."},
		"a silent turn between":  {[]string{aloud("I look."), toolCalls("c1", "time_now", "{}"), content("It is noon.")}, "I look.\n\nIt is noon."},
		"the first is silent":    {[]string{toolCalls("c1", "time_now", "{}"), content("It is noon.")}, "It is noon."},
		"the last says nothing":  {[]string{aloud("Done."), content("")}, "Done.\n\nCallgate has refused what"},
		"a refusal as a message": {[]string{aloud("I look."), strings.ReplaceAll(aloud("Now:"), "time_now", "files_delete")}, "I look.\n\nNow:\n\nCallgate has"},
	} {
		var script []func(http.ResponseWriter, *http.Request)
		for _, m := range c.turns {
			script = append(script, func(w http.ResponseWriter, r *http.Request) { stream(w, 3, "stop", m) })
		}
		h := open(t, inTurn(script...), plan{rules: all(orchestrate, asMessage)})
		w := h.post(asks(`"stream":true`))
		if got := reads(t, w); !strings.HasPrefix(got.text(), c.want) || !got.done || c.want[len(c.want)-1] == '.' && got.text() != c.want {
			t.Errorf("%s: found %q, want %q", name, got.text(), c.want)
		}
	}
}

// TestThoughtsStandApart: the same holds for what the model thought.
func TestThoughtsStandApart(t *testing.T) {
	type answer = func(http.ResponseWriter, *http.Request)
	thinks := func(thought, message string) answer {
		m := strings.Replace(message, `"content":`, `"reasoning_content":`+thought+`,"content":`, 1)
		return func(w http.ResponseWriter, r *http.Request) { stream(w, 3, "stop", m) }
	}
	call := toolCalls("c1", "time_now", "{}")
	for name, c := range map[string]struct {
		script []answer
		want   string
	}{
		"each turn":        {[]answer{thinks(`"Hm, tools."`, call), thinks(`"It is noon."`, content("noon"))}, "Hm, tools.\n\nIt is noon."},
		"nothing between":  {[]answer{thinks(`"Hm, tools."`, call), thinks("null", call), thinks(`"Noon."`, content("noon"))}, "Hm, tools.\n\nNoon."},
		"nothing above it": {[]answer{thinks("null", call), thinks(`"Noon."`, content("noon"))}, "Noon."},
	} {
		h := open(t, inTurn(c.script...), plan{rules: orchestrate})
		got := reads(t, h.post(asks(`"stream":true`)))
		if len(got.Choices) != 1 || got.Choices[0].Message.Reasoning != c.want || got.text() != "noon" || !got.done {
			t.Errorf("%s: found %+v, want %q", name, got.Choices, c.want)
		}
	}
}

// TestNotRun: in a repair every call has a result, and one without a fault of its own is told
// that it was not run, not what was wrong with another.
func TestNotRun(t *testing.T) {
	calls := toolCalls("c1", "time_now", "{}", "c2", "files_delete", `{"path":"x"}`)
	for _, rules := range []func(*upstream.Rules){nil, orchestrate} {
		h := open(t, inTurn(says(calls, "tool_calls"), says(content("I may not."), "stop")), plan{rules: rules})
		if w := h.post(asks(tools("time_now", "files_delete"))); reads(t, w).text() != "I may not." {
			t.Fatalf("found %d %s", w.Code, w.Body)
		}
		body := string(h.model.body(t, 1))
		for id, want := range map[string]string{"c1": "This call was not run: another call of the same", "c2": "files.delete"} {
			_, result, found := strings.Cut(body, `"role":"tool","tool_call_id":"`+id+`"`)
			result, _, _ = strings.Cut(result, "}}}}")
			if !found || !strings.Contains(result, want) {
				t.Errorf("%s: the model was told %q in %s", id, result, body)
			}
		}
	}
}
