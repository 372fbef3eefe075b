package chat

import (
	"bytes"
	"encoding/json"
	"testing"

	"pgregory.net/rapid"

	"github.com/callgate/callgate/gateway"
)

// TestDefinitionsAsEncoded: the definitions have the bytes of encoding/json, whatever stands in them.
func TestDefinitionsAsEncoded(t *testing.T) {
	texts := []string{"", "web_search", "Searches <the> web & more's.", "a \"quote\"", `a \ b`, "é", "\u2028", "a\tb", "\x7f", "a\u200bb", "\ufeff"}
	schemas := []string{
		`{}`, `{"type":"object"}`, `{"a": 1}`, "{\"a\":1,\n\"b\":2}", `{"a b":"c: \"d\", e"}`, `{"a":"<é>","b":["\u2028",1.50e3]}`, "{\"a\":\"\u200b\x7f\"}", `null`, ``,
	}
	rapid.Check(t, func(t *rapid.T) {
		tools := make([]gateway.Tool, rapid.IntRange(0, 4).Draw(t, "tools"))
		for i := range tools {
			tools[i] = gateway.Tool{Wire: rapid.SampledFrom(texts).Draw(t, "name"), Description: rapid.SampledFrom(texts).Draw(t, "description")}
			if s := rapid.SampledFrom(schemas).Draw(t, "schema"); s != "" {
				tools[i].InputSchema = json.RawMessage(s)
			}
		}
		got, err := definitions(tools)
		want, wantErr := marshalDefinitions(tools)
		if err != nil || wantErr != nil || !bytes.Equal(got, want) {
			t.Fatalf("found %s and %v, want %s and %v", got, err, want, wantErr)
		}
	})
}
