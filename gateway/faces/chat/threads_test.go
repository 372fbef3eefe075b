package chat_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/callgate/callgate/tool"
)

// All calls of one run have one thread for their tools, which is the run's id, or the thread
// that the application names; another run has another.
func TestTIP05OneThreadForARun(t *testing.T) {
	groups := make(chan string, 16)
	script := func(int) []string {
		return []string{toolCalls("c1", "web_search", search, "c2", "time_now", ""), toolCalls("c3", "time_now", "{}"), content("It is noon.")}
	}(0)
	h := open(t, inTurn(says(script[0], "stop"), says(script[1], "stop"), says(script[2], "stop"), says(script[0], "stop"), says(script[1], "stop"), says(script[2], "stop"), says(script[1], "stop"), says(script[2], "stop")), plan{rules: orchestrate, engine: func(task tool.Call) (tool.Result, error) {
		groups <- strings.Join(append([]string{task.Thread}, task.Ancestors...), " ")
		return tool.Result{Body: []byte(`{}`), JSON: true}, nil
	}})
	var seen []string
	for range 2 {
		w := h.post(asks(""), "Callgate-Thread-Ancestors", "root, parent")
		id := w.Header().Get("Callgate-Run-Id")
		for range 3 {
			if got := <-groups; got != id+" root parent" || id == "" {
				t.Errorf("the run %q sent a call of %q", id, got)
			}
		}
		if slices.Contains(seen, id) {
			t.Errorf("two runs are %s", id)
		}
		seen = append(seen, id)
	}
	h.post(asks(""), "Callgate-Thread", "conv")
	if got := <-groups; got != "conv" {
		t.Errorf("found %q; expected the thread of the application", got)
	}
}
