package mcp_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/callgate/callgate/engine/mcp"
)

// The id of a message that is not kept is the one that a decoder finds, wherever it
// stands, and however the bytes come.
func TestScanID(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.Int64Range(0, 1<<53).Draw(t, "id")
		var decoy any = map[string]any{
			"id": rapid.Int64Range(0, 1<<53).Draw(t, "other"), "s": rapid.String().Draw(t, "s"),
			`"id":` + rapid.String().Draw(t, "name"): []any{map[string]any{"id": 7}, `{"id":8}`, `\"id\":9,`, nil},
		}
		members := map[string]any{"jsonrpc": "2.0", "id": id, rapid.SampledFrom([]string{"a", "result", "zid", "i", "idd"}).Draw(t, "member"): decoy}
		b, err := json.Marshal(members)
		if err != nil {
			t.Fatal(err)
		}
		// A decoder may put white space anywhere, and the order is the server's.
		if rapid.Bool().Draw(t, "indented") {
			b, _ = json.MarshalIndent(members, "\t", " ")
		}
		cut := rapid.IntRange(0, len(b)).Draw(t, "cut")
		if got, ok := mcp.IDOf(b[:cut], b[cut:]); !ok || got != id {
			t.Fatalf("found %d %v, want %d in %s", got, ok, id, b)
		}
	})
	for _, none := range []string{"", "SECRET", "[]", `{"result":{"id":7}}`, `{"id":"7"}`, `{"id":null}`, `{"id":{"id":7}}`, `[{"id":7}]`, `{"id":}`, `{"id":7,"id":8}`, `{"id":7.5}`, `{"id":7e1}`, `{"id":7 8x}`} {
		none = strings.Replace(none, "{", `{"jsonrpc":"2.0",`, 1)
		if id, ok := mcp.IDOf([]byte(none)); ok {
			t.Errorf("%s: found %d", none, id)
		}
	}
	for _, line := range []string{`{"id":7}`, `{"id":7,"msg":"\"jsonrpc\":"}`, `{"id":7,"raw":{"jsonrpc":"2.0"}}`} {
		if id, ok := mcp.IDOf([]byte(line)); ok {
			t.Errorf("%s, which is no message: found %d", line, id)
		}
	}
	if _, ok := mcp.IDOf(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%0100d}`, 7)); ok {
		t.Error("an id of a hundred digits was found")
	}
}
