package callback_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func (c waiting) view(kind string, content any) string {
	return c.message("view_update", "view_type", kind, "content", content)
}

// The latest view of each type is sent to those who follow a call of the thread, now and
// later; another thread has its own, and the model reads none.
func TestVIE01TheLatestViews(t *testing.T) {
	w := newWorld(t)
	c, same, other := w.begin("later.do", "t"), w.begin("later.do", "t"), w.begin("later.do", "other")
	early, elsewhere := c.follow(), other.follow()
	next(t, early) // its state
	next(t, elsewhere)
	c.says(200, c.view("diff", map[string]any{"patch": "one"}))
	if got := next(t, early); got != `view {"view_type":"diff","content":{"patch":"one"}}` {
		t.Errorf("found %s", got)
	}
	c.says(200, c.view("plan", map[string]any{"n": 1}))
	if got := next(t, early); got != `view {"view_type":"plan","content":{"n":1}}` {
		t.Errorf("found %s", got)
	}
	same.says(200, same.view("diff", map[string]any{"patch": "two\u202e"}))
	latest := `view {"view_type":"diff","content":{"patch":"two\\u202e"}}`
	if got := next(t, early); !strings.Contains(got, "two") || strings.Contains(got, "\u202e") {
		t.Errorf("found %s; expected about %s", got, latest)
	}
	late := same.follow()
	next(t, late)
	for _, want := range []string{`view {"view_type":"plan"`, `view {"view_type":"diff","content":{"patch":"two`} {
		if got := next(t, late); !strings.HasPrefix(got, want) {
			t.Errorf("found %s; expected %s", got, want)
		}
	}
	other.says(200, other.result("text", "done"))
	if got := next(t, elsewhere); !strings.HasPrefix(got, "state ") || strings.Contains(got, "patch") {
		t.Errorf("another thread got %s", got)
	}
	c.says(200, c.result("text", "done"))
	if got := c.output(); strings.Contains(got, "patch") {
		t.Errorf("the model reads %s", got)
	}
	c.says(404, c.view("diff", map[string]any{"patch": "late"}))
}

// Values that are no views are refused, views are bounded, and forged ones change nothing.
func TestVIE01HostileViews(t *testing.T) {
	w := newWorld(t)
	c, other := w.begin("later.do", "t"), w.begin("later.do", "other")
	for name, body := range map[string]string{
		"no type":         c.message("view_update", "content", map[string]any{}),
		"a hidden type":   c.view("a\u202e", map[string]any{}),
		"a long type":     c.view(strings.Repeat("a", 65), map[string]any{}),
		"no content":      c.message("view_update", "view_type", "diff"),
		"a text":          c.view("diff", "text"),
		"a list":          c.view("diff", []int{1}),
		"a long content":  c.view("diff", map[string]any{"patch": strings.Repeat("a", 16<<10)}),
		"a long escape":   c.view("diff", map[string]any{"patch": strings.Repeat("\u202e", 4<<10)}),
		"duplicate names": strings.Replace(c.view("diff", map[string]any{"a": 1}), `"a":1`, `"a":1,"a":2`, 1),
	} {
		if r := w.post(c.token, body); r.Code != 400 {
			t.Errorf("%s: %d %s", name, r.Code, r.Body)
		}
	}
	if r := w.post(c.token, other.view("diff", map[string]any{"patch": "forged"})); r.Code != 404 {
		t.Errorf("another thread's: %d %s", r.Code, r.Body)
	}
	for n := range 8 {
		c.says(200, c.view(fmt.Sprint("type", n), map[string]any{}))
	}
	for n := range 1000 {
		c.says(503, c.view(fmt.Sprint("other", n), map[string]any{}))
	}
	c.says(200, c.view("type3", map[string]any{"n": json.Number("1e2")}))
	late := other.follow()
	next(t, late)
	other.says(200, other.view("diff", map[string]any{"patch": "its own"}))
	if got := next(t, late); !strings.Contains(got, "its own") {
		t.Errorf("found %s", got)
	}
}

// A tool may show views while its subscription is active, and not behind it.
func TestVIE01ViewsOfASubscription(t *testing.T) {
	w := newWorld(t)
	c := w.subscribed()
	events := c.follow()
	next(t, events)
	c.says(200, c.view("diff", map[string]any{"patch": "one"}))
	if got := next(t, events); !strings.HasPrefix(got, "view ") {
		t.Errorf("found %s", got)
	}
	c.says(200, c.lastEvent("last"))
	c.says(404, c.view("diff", map[string]any{"patch": "two"}))
}
