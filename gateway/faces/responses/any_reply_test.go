package responses_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/callgate/callgate/upstream"
)

// anyItem is an item of a reply. What holds SECRET may not be shown.
func anyItem(r *rand.Rand, n int) string {
	texts := []string{"Hello.", "", " \n", "Here is {", "[TOOL", "<tool_call>SECRET", "fine `"}
	text := func() string {
		return `{"type":"output_text","annotations":[],"logprobs":[],"text":` + quoted(texts[r.IntN(len(texts))]) + `}`
	}
	said := func(parts ...string) string {
		return fmt.Sprintf(`{"id":"msg_%d","type":"message","status":"completed","role":"assistant","content":[%s]}`, n, strings.Join(parts, ","))
	}
	switch r.IntN(10) {
	case 0:
		return said()
	case 1, 2, 3:
		return said(text())
	case 4:
		return said(text(), text())
	case 5:
		return said(text(), `{"type":"refusal","refusal":"No."}`)
	case 6:
		return strings.Replace(reasoning, "rs_1", fmt.Sprintf("rs_%d", n), 1)
	case 7:
		return fmt.Sprintf(`{"id":"ws_%d","type":"web_search_call","status":"completed","action":{"type":"search"}}`, n)
	case 8:
		return function(fmt.Sprintf("call_%d", n), "web_search", `{"query":"go"}`)
	}
	return function(fmt.Sprintf("call_%d", n), "nothing", `{"query":"SECRET"}`)
}

// anyStream are the events of a reply with some items: some come whole, some parts of messages with the end of their item
// alone, and some items at once.
func anyStream(r *rand.Rand, items []string) []string {
	all := events("completed", items...)
	last := len(all) - 1
	var open [][]string
	for i := range items {
		whole, late := r.IntN(5) == 0, r.IntN(4) == 0
		var list []string
		for _, e := range all[1:last] {
			if strings.Contains(e, fmt.Sprintf(`"output_index":%d,`, i)) && (strings.Contains(e, "output_item.done") || !whole && !(late && strings.Contains(e, `"content_index":1`))) {
				list = append(list, e)
			}
		}
		open = append(open, list)
	}
	list := all[:1:1]
	for begun := 1; len(open) > 0; {
		i := 0
		if r.IntN(3) == 0 {
			i = r.IntN(begun) // of one that has begun
		}
		if list = append(list, open[i][0]); i == begun-1 && r.IntN(6) == 0 {
			begun = min(begun+1, len(open))
		}
		if open[i] = open[i][1:]; len(open[i]) == 0 {
			open = append(open[:i], open[i+1:]...)
			begun = max(begun-1, 1)
		}
	}
	return renumber(append(list, all[last]))
}

// TestAnyReply: whatever a reply has, in whichever order its events come, the strictest client reads the answer, and finds
// nothing of a text or a call that was refused; also where the model is asked again.
func TestAnyReply(t *testing.T) {
	for seed := range uint64(600) {
		r := rand.New(rand.NewPCG(seed, 1))
		var items []string
		for n := range 1 + r.IntN(4) {
			items = append(items, anyItem(r, n))
		}
		rules := permissive
		if seed%2 == 0 {
			rules = all(permissive, func(r *upstream.Rules) { r.MaxRepairs = 2 })
		}
		h := open(t, plan{rules: rules}, says(items...), says(message("Fine.")))
		if seed%3 > 0 {
			h = open(t, plan{rules: rules}, sends(anyStream(r, items)...), says(message("Fine.")))
		}
		body := asks(tools("web_search"))
		if seed%3 > 0 {
			body = asksStream(tools("web_search"))
		}
		w := h.post(body)
		got := reads(t, w)
		switch {
		case strings.Contains(w.Body.String(), "SECRET"), got.Error != nil && (got.calls() != "" || got.Error.Code == "upstream_unavailable"):
			t.Errorf("%d: %q: %d %s", seed, items, w.Code, w.Body)
		}
	}
}
