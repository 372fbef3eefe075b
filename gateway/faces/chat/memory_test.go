package chat_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/callgate/callgate/gateway/faces/chat"
)

// times repeats what a number makes, with commas between.
func times(n int, of func(int) string) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(of(i))
	}
	return b.String()
}

func always(s string) func(int) string { return func(int) string { return s } }

func named(i int) string { return fmt.Sprintf(`"%d":0`, i) }

func function(i int) string {
	return fmt.Sprintf(`{"type":"function","function":{"name":"f%d"}}`, i)
}

// TestRequestsTakeLittle: reading a body takes a few times its length, whatever is in
// it, and all that it takes counts here: not only what is held in the end.
func TestRequestsTakeLittle(t *testing.T) {
	if testing.Short() {
		t.Skip("short: bodies of 8 MB, which one goroutine reads, are left out")
	}
	const most = 7 // times the body
	for name, c := range map[string]struct {
		body, message string // "" is well
	}{
		"text":                    {`{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat("x", 8<<20-100) + `"}]}`, ""},
		"messages without end":    {`{"model":"m","messages":[` + times(524_000, always(`{"role":"user"}`)) + `]}`, `"messages" must be`},
		"no messages":             {`{"model":"m","messages":[` + times(4_000_000, always("0")) + `]}`, "must be an object"},
		"members of a message":    {`{"model":"m","messages":[{"role":"user",` + times(600_000, named) + `}]}`, "too many members"},
		"members of the request":  {`{"model":"m","messages":[{"role":"user"}],` + times(600_000, named) + `}`, "too many members"},
		"members of a member":     {`{"model":"m","messages":[{"role":"user"}],"x":{` + times(600_000, named) + `}}`, "too many members"},
		"members, level by level": {`{"model":"m","messages":[{"role":"user"}],"x":` + strings.Repeat(`{`+times(100, named)+`,"a":`, 8000) + `1` + strings.Repeat(`}`, 8000) + `}`, "too many members"},
		"parts of a system":       {`{"model":"m","messages":[{"role":"system","content":[` + times(4_000_000, always("0")) + `]}]}`, ""},
		"calls": {`{"model":"m","messages":[{"role":"assistant","tool_calls":[` + times(110_000, func(i int) string {
			return fmt.Sprintf(`{"type":"function","id":"%d","function":{"name":"a","arguments":""}}`, i)
		}) + `]}]}`, `"tool_calls" must be`},
		"arguments":              {`{"model":"m","messages":[{"role":"assistant","tool_calls":[{"type":"function","id":"1","function":{"name":"a","arguments":"{` + times(500_000, func(i int) string { return fmt.Sprintf(`\"%d\":0`, i) }) + `}"}}]}]}`, "arguments"},
		"parts of a result":      {`{"model":"m","messages":[{"role":"assistant","tool_calls":[{"type":"function","id":"1","function":{"name":"a","arguments":""}}]},{"role":"tool","tool_call_id":"1","content":[` + times(320_000, always(`{"type":"text","text":""}`)) + `]}]}`, ""},
		"tools":                  {`{"model":"m","messages":[{"role":"user"}],"tools":[` + times(150_000, function) + `]}`, `"tools" must be`},
		"tools that are allowed": {`{"model":"m","messages":[{"role":"user"}],"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[` + times(150_000, function) + `]}}}`, "allowed_tools"},
	} {
		body := []byte(c.body)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := chat.Read(body)
		runtime.ReadMemStats(&after)
		took := float64(after.TotalAlloc-before.TotalAlloc) / float64(len(body))
		t.Logf("%-24s %4.1f MB: %.1f times that", name, float64(len(body))/1e6, took)
		if took > most {
			t.Errorf("%s: it takes %.1f times its body", name, took)
		}
		if c.message == "" && err != nil || c.message != "" && (err == nil || !strings.Contains(err.Error(), c.message)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRequestBounds: as many as there may be are taken, and one more is not.
func TestRequestBounds(t *testing.T) {
	for name, c := range map[string]struct {
		most int
		body func(int) string
	}{
		"messages": {1 << 14, func(n int) string {
			return `{"model":"m","messages":[` + times(n, always(`{"role":"user"}`)) + `]}`
		}},
		"tools": {1 << 10, func(n int) string {
			return `{"model":"m","messages":[{"role":"user"}],"tools":[` + times(n, function) + `]}`
		}},
		"tools that are allowed": {1 << 10, func(n int) string {
			return `{"model":"m","messages":[{"role":"user"}],"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[` + times(n, always(function(1))) + `]}}}`
		}},
		"members": {1<<14 - 2, func(n int) string {
			return `{"model":"m","messages":[{"role":"user"}],"x":{` + times(n-1, named) + `}}`
		}},
	} {
		if err := chat.Read([]byte(c.body(c.most))); err != nil {
			t.Errorf("%d %s: %v", c.most, name, err)
		}
		if err := chat.Read([]byte(c.body(c.most + 1))); err == nil {
			t.Errorf("%d %s are taken", c.most+1, name)
		}
	}
}

// TestNamedTwice: a tool that tool_choice names over and over again is one.
func TestNamedTwice(t *testing.T) {
	names, err := chat.ToolChoiceNames([]byte(`{"model":"m","messages":[{"role":"user"}],"tools":[` + times(3, function) + `],"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[` +
		times(1000, func(i int) string { return function(2 - i%2) }) + `]}}}`))
	if err != nil || fmt.Sprint(names) != "[f2 f1]" {
		t.Errorf("%v %v", names, err)
	}
}
