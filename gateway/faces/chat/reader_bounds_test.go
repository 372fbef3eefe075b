package chat

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// TestSizeOfAnswer: every part of an answer counts, and what comes again
// and replaces itself does not.
func TestSizeOfAnswer(t *testing.T) {
	const most = 10_000
	text := strings.Repeat("a", 100)
	call := func(i int, function string) string {
		return fmt.Sprintf(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":%d,"id":"%s%d",%s}]}}]}`, i, text, i, function)
	}
	for name, c := range map[string]struct {
		chunk func(i int) string
		over  bool
	}{
		"content":   {func(int) string { return `{"choices":[{"index":0,"delta":{"content":"` + text + `"}}]}` }, true},
		"a refusal": {func(int) string { return `{"choices":[{"index":0,"delta":{"refusal":"` + text + `"}}]}` }, true},
		"arguments": {func(int) string { return call(0, `"function":{"name":"f","arguments":"`+text+`"}`) }, true},
		"calls":     {func(i int) string { return call(i, `"function":{"name":"f"}`) }, true},
		"of a call": {func(i int) string {
			return call(0, fmt.Sprintf(`"extra_content":{"a%d":0},"function":{"name":"f"}`, i))
		}, true},
		"within members": {func(i int) string { return fmt.Sprintf(`{"choices":[],"citations":{"b":{"c%d":0}}}`, i) }, true},
		"not known":      {func(int) string { return `{"choices":[{"index":0,"delta":{"x":"` + text + `"}}]}` }, true},
		"pieces":         {func(int) string { return `{"choices":[{"index":0,"delta":{"reasoning":"` + text + `"}}]}` }, true},
		"elements":       {func(int) string { return `{"choices":[{"index":0,"logprobs":{"content":["` + text + `"]}}]}` }, true},
		"the same again": {func(int) string {
			return `{"choices":[],"system_fingerprint":"` + text + `","usage":{"total_tokens":1}}`
		}, false},
	} {
		r := &reader{}
		for i := 0; i < 500 && r.bytes <= most; i++ {
			if _, err := r.Event(nil, []byte(c.chunk(i))); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if size, _, _ := r.State(); (size > most) != c.over || size > most+2*(len(text)+2*memberCost) {
			t.Errorf("%s: it takes %d", name, size)
		}
	}
}

// TestReadingTakesLittle: what reading a stream takes in all, and not only what is held in the end, is a few
// times its length.
func TestReadingTakesLittle(t *testing.T) {
	const most = 8 // times the stream
	of := func(n int, chunk string) []string { return slices.Repeat([]string{chunk}, n) }
	for name, c := range map[string]struct {
		chunks []string
		fault  string
	}{
		"citations":             {strings.SplitAfter(strings.Repeat(`{"choices":[],"citations":["a"]}{"choices":[],"citations":["b"]}`, 10_000), "]}")[:20_000], ""},
		"annotations":           {of(20_000, `{"choices":[{"index":0,"delta":{"annotations":["a"]}}]}`), ""},
		"pieces of a call":      {of(20_000, `{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"a"}}]}}]}`), ""},
		"choices of a document": {of(1, `{"choices":[`+strings.Repeat(`{},`, 100_000)+`{}]}`), "more than 128 choices"},
		"calls of a document":   {of(1, `{"choices":[{"index":0,"delta":{"tool_calls":[`+strings.Repeat(`{"id":"a"},`, 100_000)+`{}]}}]}`), "more than 1024 calls"},
	} {
		r := &reader{}
		length, fault := 0, ""
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for _, chunk := range c.chunks {
			length += len(chunk)
			if _, err := r.Event(nil, []byte(chunk)); err != nil {
				fault = err.Error()
			}
		}
		runtime.ReadMemStats(&after)
		if took := float64(after.TotalAlloc-before.TotalAlloc) / float64(length); took > most || fault != c.fault {
			t.Errorf("%s: it takes %.1f times the stream, and says %q", name, took, fault)
		}
	}
}
