package acpproxy

import (
	"encoding/json"
	"testing"

	"github.com/callgate/callgate/gateway/faces/acpproxy/internal/attribution"
	"github.com/callgate/callgate/internal/acp/wire"
)

// TestStandsFor: a call that bears the name of a registered tool is judged as that tool only if it
// is of its kind, and changes no files that were not judged with its arguments.
func TestStandsFor(t *testing.T) {
	const input = `{"path":"/w/a","more":["/w/b"]}`
	for _, c := range []struct {
		registered, said wire.ToolKind
		paths            []string
		stands           bool
	}{
		{wire.KindSearch, wire.KindSearch, []string{"/etc/passwd"}, true}, // found, not changed
		{wire.KindSearch, wire.KindExecute, nil, false},
		{wire.KindOther, wire.KindExecute, nil, true},
		{wire.KindSearch, wire.KindOther, nil, true},
		{wire.KindOther, wire.KindEdit, []string{"/w/a"}, false},
		{wire.KindRead, wire.KindEdit, []string{"/w/a"}, false},
		{wire.KindEdit, wire.KindEdit, nil, true},
		{wire.KindEdit, wire.KindEdit, []string{"/w/a", "/w/b", "/w/a"}, true},
		{wire.KindEdit, wire.KindEdit, []string{"/w/a", "/etc/passwd"}, false},
		{wire.KindDelete, wire.KindDelete, []string{"path"}, true}, // any text of the input
		{wire.KindMove, wire.KindMove, []string{"/w"}, false},
	} {
		r := attribution.Report{Kind: c.said, Diffs: c.paths}
		if got := standsFor(c.registered, r, json.RawMessage(input)); got != c.stands {
			t.Errorf("%s for %s of %q: %t", c.registered, c.said, c.paths, got)
		}
	}
}
