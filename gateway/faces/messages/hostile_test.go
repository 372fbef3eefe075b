package messages_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/callgate/callgate/upstream"
)

// TestToolsetOfACall: a call is of the tool that its toolset and its name name together. A client
// that does not know toolsets would run the one of its name alone.
func TestToolsetOfACall(t *testing.T) {
	each(t, func(t *testing.T, in func(...string) script, ask func(...string) string) {
		cut := strings.Replace(toolUse("toolu_1", "search", `{"query":"SECRET"}`), `"name":`, `"toolset_name":"web","name":`, 1)
		h := open(t, in(message("tool_use", cut)), plan{rules: noRepairs})
		w := h.create(ask(tools("web_search")))
		if got := reads(t, w); got.Error.Details.Code != "unknown_tool" || strings.Contains(w.Body.String(), "SECRET") {
			t.Errorf("a name cut in two: found %d %s", w.Code, w.Body)
		}
		// A member of a toolset is known by both, and by its name alone it is not.
		const toolset = `"tools":[{"type":"computer_toolset_20260801"}]`
		fromRequest := func(r *upstream.Rules) { r.MaxRepairs, r.Tools = 0, upstream.FromRequest }
		for call, code := range map[string]string{
			strings.Replace(toolUse("toolu_1", "screenshot", `{}`), `"name":`, `"toolset_name":"computer","name":`, 1): "permission_denied",
			toolUse("toolu_1", "computer_screenshot", `{}`):                                                            "unknown_tool",
			toolUse("toolu_1", "screenshot", `{}`):                                                                     "unknown_tool",
		} {
			h := open(t, in(message("tool_use", call)), plan{rules: fromRequest})
			w := h.create(ask(toolset))
			if got := reads(t, w); got.Error.Details.Code != code {
				t.Errorf("%s: found %d %s, expected %s", call, w.Code, w.Body, code)
			}
		}
	})
}

// TestCitationsBeforeRefusedText: a block of which nothing but citations came is not begun for the
// application before its text is released. Otherwise the next turn would begin a block within it.
func TestCitationsBeforeRefusedText(t *testing.T) {
	const opening = `{"type":"text","text":"","citations":[]}`
	const citation = `{"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","citation":{"type":"page_location"}}}`
	h := open(t, func(turn int, w http.ResponseWriter, _ *http.Request) {
		text := `fine`
		if turn == 0 {
			text = `<tool_call>`
		}
		w.Header().Set("Content-Type", "text/event-stream")
		var b strings.Builder
		stream(&b, "deltas", 100, message("end_turn", textOf(text)))
		_, _ = io.WriteString(w, strings.Replace(b.String(), `{"text":"","type":"text"}}`+"\n\n", opening+"}\n\nevent: content_block_delta\ndata: "+citation+"\n\n", 1))
	}, plan{})
	w := h.create(asks(streamed))
	if got := reads(t, w); h.model.times() != 2 || !got.done || got.text != "fine" || len(got.Content) != 1 || strings.Count(w.Body.String(), "page_location") != 1 {
		t.Errorf("asked %d times, found %s", h.model.times(), w.Body)
	}
}

// TestCallsInTheHead: nothing around the content of a message carries what a reader could take for
// a call, at the beginning of a stream or at its end.
func TestCallsInTheHead(t *testing.T) {
	const call = `"<tool_call>SECRET"`
	each(t, func(t *testing.T, in func(...string) script, ask func(...string) string) {
		for _, at := range []string{"model", "container", "diagnostics", "stop_details", "context_management", "input_transformations", "usage"} {
			m := message("end_turn", textOf("ok"))
			switch at {
			case "model":
				m = strings.Replace(m, `"claude-x"`, call, 1)
			case "usage": // below
			default:
				m = strings.Replace(m, `"content"`, `"`+at+`":{"a":`+call+`},"content"`, 1)
			}
			h := open(t, func(turn int, w http.ResponseWriter, r *http.Request) {
				rec := httptest.NewRecorder()
				in(m)(turn, rec, r)
				w.Header().Set("Content-Type", rec.Header().Get("Content-Type"))
				_, _ = io.WriteString(w, strings.ReplaceAll(rec.Body.String(), `"usage":{"input_tokens"`, `"usage":{"tier":`+call+`,"input_tokens"`))
			}, plan{})
			w := h.create(ask())
			if got := reads(t, w); !got.done || got.text != "ok" || strings.Contains(w.Body.String(), "SECRET") || got.Model == "" {
				t.Errorf("%s: found %d %s", at, w.Code, w.Body)
			}
		}
	})
}

// TestCallsInASummary: a summary of the conversation is judged as text is, and repaired as text is.
func TestCallsInASummary(t *testing.T) {
	each(t, func(t *testing.T, in func(...string) script, ask func(...string) string) {
		for _, mark := range []string{"<tool_call>SECRET", `{"tool":{"name":"web.search","arguments":{"query":"SECRET"}}}`} {
			bad := message("end_turn", `{"type":"compaction","content":`+quoted(mark)+`}`, textOf("done"))
			h := open(t, in(bad), plan{rules: noRepairs})
			w := h.create(ask())
			if got := reads(t, w); got.Error.Details.Code != "foreign_call_syntax" || strings.Contains(w.Body.String(), "SECRET") {
				t.Errorf("%s: found %d %s", mark, w.Code, w.Body)
			}
			h = open(t, in(bad, message("end_turn", `{"type":"compaction","content":"short"}`, textOf("ok"))), plan{})
			w = h.create(ask())
			if got := reads(t, w); got.text != "ok" || !got.done || len(got.Content) != 2 || !strings.Contains(w.Body.String(), `"content":"short"`) {
				t.Errorf("%s, repaired: found %d %s", mark, w.Code, w.Body)
			}
		}
	})
}
