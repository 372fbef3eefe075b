package mcp

import (
	"net/http"
	"slices"
)

// The revisions, the latest first. Of the first, each request stands by itself; of
// the others a client begins with initialize.
const (
	revision2026 = "2026-07-28"
	revision2025 = "2025-11-25"
)

var revisions = []string{revision2026, revision2025, "2025-06-18"} // read only

// The members of a request's _meta.
const (
	metaVersion      = "io.modelcontextprotocol/protocolVersion"
	metaCapabilities = "io.modelcontextprotocol/clientCapabilities"
	metaServer       = "io.modelcontextprotocol/serverInfo"
)

// unsupported refuses a revision that is not spoken here.
func unsupported(asked string) *rpcError {
	if len(asked) > maxID {
		return newError(codeRequest, "The revision of the protocol is longer than %d bytes.", maxID)
	}
	return newError(codeVersion, "This revision of the protocol is not spoken here.").
		withData(map[string]any{"supported": revisions, "requested": asked})
}

// statesRevision tells whether a message is of the revision that needs no beginning,
// as far as it says so itself.
func (m *message) statesRevision() bool {
	said, has := m.meta()[metaVersion]
	return (has && !slices.Contains(revisions[1:], stringOf(said))) || m.method == methodDiscover
}

// checkRequestMeta says what a request of 2026-07-28 lacks, or says amiss of itself.
func (m *message) checkRequestMeta() *rpcError {
	meta := m.meta()
	if stringOf(meta[metaVersion]) == "" {
		return newError(codeParams, "\"params._meta\" must say %q.", metaVersion)
	}
	if _, ok := meta[metaCapabilities].(map[string]any); !ok {
		return newError(codeParams, "\"params._meta\" must say %q.", metaCapabilities)
	}
	if said, has := meta[metaLevel]; has && !isLevel(said) {
		return badLevel(metaLevel)
	}
	return nil
}

func stringOf(v any) string {
	s, _ := v.(string)
	return s
}

// checkRevision tells of which era a message over HTTP is, and what of its headers says
// something else than its body.
func (m *message) checkRevision(h http.Header) (modern bool, f *rpcError) {
	stated, f := singleHeader(h, headerVersion)
	if f != nil {
		return true, f
	}
	if stated != revision2026 && !m.statesRevision() {
		if stated != "" && !slices.Contains(revisions, stated) && m.method != methodInitialize {
			return false, unsupported(stated)
		}
		// Nobody need send them before 2026-07-28. Who does is not believed twice.
		return false, m.checkHeaders(h, false)
	}
	if !m.isNotification() {
		if f := m.checkRequestMeta(); f != nil {
			return true, f
		}
		said := stringOf(m.meta()[metaVersion])
		if stated != said {
			return true, headerMismatch(headerVersion)
		}
		if said != revision2026 {
			return true, unsupported(said)
		}
	}
	return true, m.checkHeaders(h, true)
}

// checkHeaders holds the headers of 2026-07-28 that say what a message is against it:
// somebody on the way may have gone by them.
func (m *message) checkHeaders(h http.Header, required bool) *rpcError {
	if required || len(h[headerMethod]) > 0 {
		if f := requireHeader(h, headerMethod, m.method); f != nil {
			return f
		}
	}
	if !required && len(h[headerName]) == 0 {
		return nil
	}
	switch m.method {
	case methodCall, methodPrompt:
		return requireHeader(h, headerName, stringOf(m.params["name"]))
	case methodResource:
		return requireHeader(h, headerName, stringOf(m.params["uri"]))
	}
	return nil
}
