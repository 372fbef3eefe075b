package delegate_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/callgate/callgate/internal/acp/delegate"
	"github.com/callgate/callgate/internal/acp/wire"
)

// TestOldText: a file that is not there has no text before, and one that cannot be read or is too long
// has one that is not known.
func TestOldText(t *testing.T) {
	for name, c := range map[string]struct {
		answer string
		err    error
		text   string
		none   bool
		known  bool
	}{
		"a file":               {answer: `{"content":"old"}`, text: "old", known: true},
		"an empty file":        {answer: `{"content":""}`, known: true},
		"none":                 {err: &delegate.Refused{Code: wire.CodeNotFound}, none: true, known: true},
		"another error":        {err: &delegate.Refused{Code: -32603}, none: true},
		"a client that left":   {err: errors.New("gone"), none: true},
		"nonsense":             {answer: `{"content":1}`, none: true},
		"the longest":          {answer: `{"content":"` + strings.Repeat("x", 256<<10) + `"}`, text: strings.Repeat("x", 256<<10), known: true},
		"longer than is shown": {answer: `{"content":"` + strings.Repeat("x", 256<<10+1) + `"}`, none: true},
	} {
		call := func(_ context.Context, method string, params any) (json.RawMessage, error) {
			if r, ok := params.(wire.ReadTextFileRequest); method != wire.MethodReadTextFile || !ok || r.SessionID != "s" || r.Path != "/a" || r.Limit != nil {
				t.Errorf("%s: %s %+v", name, method, params)
			}
			return json.RawMessage(c.answer), c.err
		}
		text, known := delegate.OldText(t.Context(), call, "s", "/a")
		if known != c.known || (text == nil) != c.none || text != nil && *text != c.text {
			t.Errorf("%s: %v, known %v", name, text, known)
		}
	}
}
