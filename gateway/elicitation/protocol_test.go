package elicitation_test

import (
	"testing"

	"github.com/callgate/callgate/internal/testkit/corpora"
)

// definitions are those of what a caller is given, and of what a tool is.
var (
	questions = map[string]string{"form": "ElicitRequestFormParams", "url": "ElicitRequestURLParams", "sampling": "CreateMessageRequestParams"}
	answers   = map[string]string{"form": "ElicitResult", "url": "ElicitResult", "sampling": "CreateMessageResult", "roots": "ListRootsResult"}
)

// protocol is the schema of the protocol.
func protocol(t testing.TB) *corpora.Components {
	t.Helper()
	return corpora.Definitions(t, "mcp", "2026-07-28.schema.json")
}

// ofProtocol reports whether the parameters of a question are of the protocol. Those of
// roots are an object alone.
func ofProtocol(p *corpora.Components, kind string, params []byte) error {
	if questions[kind] == "" {
		return nil
	}
	return p.Check(questions[kind], params)
}
