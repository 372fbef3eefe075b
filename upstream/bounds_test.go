package upstream

import (
	"fmt"
	"strings"
	"testing"

	"github.com/callgate/callgate/upstream/chat"
)

// TestAssemblerKeepsABound: every part of an answer counts, and what comes again
// and replaces itself does not.
func TestAssemblerKeepsABound(t *testing.T) {
	const most, memberCost = 10_000, 256
	text := strings.Repeat("a", 100)
	call := func(i int, function string) string {
		return fmt.Sprintf(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":%d,"id":"%s%d",%s}]}}]}`, i, text, i, function)
	}
	for name, c := range map[string]struct {
		chunk func(i int) string
		over  bool
	}{
		"content":        {func(int) string { return `{"choices":[{"index":0,"delta":{"content":"` + text + `"}}]}` }, true},
		"a refusal":      {func(int) string { return `{"choices":[{"index":0,"delta":{"refusal":"` + text + `"}}]}` }, true},
		"arguments":      {func(int) string { return call(0, `"function":{"name":"f","arguments":"`+text+`"}`) }, true},
		"calls":          {func(i int) string { return call(i, `"function":{"name":"f"}`) }, true},
		"members":        {func(i int) string { return fmt.Sprintf(`{"choices":[],"a%d":0}`, i) }, true},
		"of a choice":    {func(i int) string { return fmt.Sprintf(`{"choices":[{"index":0,"a%d":0}]}`, i) }, true},
		"of a call":      {func(i int) string { return call(0, fmt.Sprintf(`"a%d":0,"function":{"name":"f"}`, i)) }, true},
		"within members": {func(i int) string { return fmt.Sprintf(`{"choices":[],"a":{"b":{"c%d":0}}}`, i) }, true},
		"pieces":         {func(int) string { return `{"choices":[{"index":0,"delta":{"reasoning":"` + text + `"}}]}` }, true},
		"elements":       {func(int) string { return `{"choices":[{"index":0,"logprobs":{"content":["` + text + `"]}}]}` }, true},
		"the same again": {func(int) string {
			return `{"choices":[],"system_fingerprint":"` + text + `","usage":{"total_tokens":1}}`
		}, false},
	} {
		a, r := Assembler{maxBytes: most}, chat.Reader{}
		var err error
		for i := 0; i < 500 && err == nil; i++ {
			chunk, unread := r.ReadChunk([]byte(c.chunk(i)))
			if unread != nil {
				t.Fatalf("%s: %v", name, unread)
			}
			err = a.Add(chunk)
		}
		if (err != nil) != c.over || a.reserved > most+2*(len(text)+2*memberCost) {
			t.Errorf("%s: kept %d, %v", name, a.reserved, err)
		}
		if _, unfinished := a.Complete(); unfinished == nil || c.over && a.Add(&chat.Chunk{}) == nil {
			t.Errorf("%s: a fault did not last", name)
		}
	}
}
